from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from stockade.engine.batching import SMALLEST, TokenBudget, TuningMemory, cut_batches


@given(st.lists(st.integers(0, 600), max_size=200), st.integers(1, 5000), st.integers(1, 8))
def test_every_item_is_in_exactly_one_batch_within_the_budget(lengths: list[int], tokens: int, workers: int) -> None:
    batches = list(cut_batches(lengths, TokenBudget(tokens), workers))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[index] for index in batch)
        assert len(batch) == 1 or len(batch) * longest <= tokens


def watch(budget: TokenBudget, tokens_per_second: dict[int, float]) -> None:
    for _ in range(100):
        speed = tokens_per_second.get(budget.tokens, 1.0)
        budget.observe(budget.tokens, budget.tokens / speed)


def test_tuning_stops_at_the_budget_beyond_which_nothing_is_gained() -> None:
    budget = TokenBudget()
    watch(budget, {512: 100.0, 1024: 150.0, 2048: 200.0, 4096: 201.0, 8192: 400.0})
    assert budget.tokens == 2048


def test_half_empty_batches_teach_nothing() -> None:
    budget = TokenBudget()
    for _ in range(50):
        budget.observe(100, 1e-9)
    assert budget.tokens == 512


def test_the_best_budget_is_remembered_per_model(tmp_path: Path) -> None:
    memory = TuningMemory("model|cpu", tmp_path)
    watch(TokenBudget(memory=memory), {512: 100.0, 1024: 50.0})
    assert TokenBudget(memory=TuningMemory("model|cpu", tmp_path)).tokens == 512
    assert TuningMemory("model|cpu", tmp_path).recall() == 512
    assert TuningMemory("other|cpu", tmp_path).recall() is None


def test_a_lost_or_broken_memory_only_costs_a_new_tuning(tmp_path: Path) -> None:
    (tmp_path / "batch-budgets.json").write_text("{broken")
    assert TuningMemory("m", tmp_path).recall() is None
    blocked = tmp_path / "file"
    blocked.write_text("")
    TuningMemory("m", blocked / "below-a-file").remember(512)


def test_halving_ends_at_the_smallest_budget() -> None:
    budget = TokenBudget(256)
    while budget.halve():
        pass
    assert budget.tokens == SMALLEST
