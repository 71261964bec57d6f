"""Small ONNX networks whose answers a person can compute: the logit of a class is the sum of its words' weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.conftest import WORDS, tiny_tokenizer

WEIGHTS = {"great": 2.0, "bad": -2.0, "not": -0.5, "[PAD]": 100.0}
"""The weight of padding shows wherever a mask is not heeded."""


def make_network(
    path: Path,
    *,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    output: str = "logits",
    shape: str = "two",
    dtype: str = "int64",
    width: int | None = None,
    scale: float = 1.0,
    quantised: bool = False,
) -> Path:
    """Write a network; `shape` is two columns, "column" (n, 1) or "flat" (n,); "softmax" has probabilities."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from onnx import TensorProto, helper, numpy_helper

    kind = TensorProto.INT64 if dtype == "int64" else TensorProto.INT32
    columns = 2 if shape in ("two", "softmax") else 1
    table = np.zeros((len(WORDS), columns), dtype=np.float32)
    for word, weight in WEIGHTS.items():
        table[WORDS.index(word), -1] = scale * weight
    sides: list[Any] = [numpy_helper.from_array(table, "table")]
    sides.append(numpy_helper.from_array(np.eye(columns, dtype=np.float32), "identity"))
    nodes = [helper.make_node("Gather", ["table", inputs[0]], ["vectors"])]
    if len(inputs) > 1:
        sides.append(numpy_helper.from_array(np.array([2], dtype=np.int64), "last"))
        nodes += [
            helper.make_node("Cast", [inputs[1]], ["weights"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["weights", "last"], ["wide"]),
            helper.make_node("Mul", ["vectors", "wide"], ["kept"]),
        ]
    sides.append(numpy_helper.from_array(np.array([1], dtype=np.int64), "along"))
    nodes.append(
        helper.make_node("ReduceSum", ["kept" if len(inputs) > 1 else "vectors", "along"], ["sum"], keepdims=0)
    )
    nodes.append(helper.make_node("MatMul", ["sum", "identity"], ["product"]))
    if shape == "softmax":
        nodes.append(helper.make_node("Softmax", ["product"], [output], axis=1))
    elif shape == "flat":
        nodes.append(helper.make_node("Squeeze", ["product", "along"], [output]))
    else:
        nodes.append(helper.make_node("Identity", ["product"], [output]))
    if len(inputs) > 2:
        nodes.append(helper.make_node("Cast", [inputs[2]], ["types"], to=TensorProto.FLOAT))
    values = [helper.make_tensor_value_info(name, kind, ["batch", width or "length"]) for name in inputs]
    size: list[str | int | None] = ["batch"] if shape == "flat" else ["batch", columns]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, size)]
    graph = helper.make_graph(nodes, "tiny", values, outputs, sides)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    if quantised:
        from onnxruntime.quantization import quantize_dynamic

        quantize_dynamic(path, path)
    return path


def make_folder(folder: Path, *, config: dict[str, Any] | None = None, **network: Any) -> Path:
    """A folder with a network, the tiny tokenizer and a config, if one is given."""
    folder.mkdir(parents=True, exist_ok=True)
    make_network(folder / "model.onnx", **network)
    tiny_tokenizer().save_pretrained(folder)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder
