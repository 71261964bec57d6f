"""LoRA: a merged adapter is the adapted model, and begins at the base model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from stockade.core.errors import ModelError
from stockade.models.lora import add_lora, load_adapter, merge_adapter, save_adapter, trained_adapter


def network() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))


def test_merging_gives_the_answers_of_the_adapted_model(tmp_path: Path) -> None:
    inputs, adapted = torch.randn(4, 5), network()
    add_lora(adapted, "^0$", rank=2, scale=2.0)
    torch.testing.assert_close(adapted(inputs), network()(inputs))  # b is zero before training
    assert [name for name, weight in adapted.named_parameters() if weight.requires_grad] == ["0.a", "0.b"]
    with torch.no_grad():
        adapted[0].b.normal_().copy_(adapted[0].b.half())
        adapted[0].a.copy_(adapted[0].a.half())
        adapted[2].bias.fill_(0.5)
    save_adapter(trained_adapter(adapted, ["2.bias"]), tmp_path / "adapter.safetensors")
    loaded = load_adapter(tmp_path / "adapter.safetensors")
    assert (set(loaded.deltas), set(loaded.replaced), loaded.scale) == ({"0"}, {"2.bias"}, 2.0)
    merged = network()
    merge_adapter(merged, loaded)
    torch.testing.assert_close(merged(inputs), adapted(inputs))


def test_an_adapter_of_another_model_is_refused(tmp_path: Path) -> None:
    adapted = network()
    add_lora(adapted, "^2$", rank=1, scale=1.0)
    save_adapter(trained_adapter(adapted), tmp_path / "adapter.safetensors")
    with pytest.raises(ModelError, match=r"changes 2\.weight, which Linear has not got"):
        merge_adapter(nn.Linear(2, 2), load_adapter(tmp_path / "adapter.safetensors"))
    with pytest.raises(ModelError, match="cannot be read"):
        load_adapter(tmp_path / "missing.safetensors")
