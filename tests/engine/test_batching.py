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


@given(st.lists(st.integers(1, 60), max_size=60), st.integers(60, 600))
def test_batches_never_cost_more_than_full_ones(lengths: list[int], tokens: int) -> None:
    """A batch costs its padded tokens and a call, which is an eighth of the budget as long as none was measured."""

    def cost(batches: list[list[int]]) -> float:
        return sum(len(batch) * max(lengths[index] for index in batch) + tokens / 8 for batch in batches)

    assert cost(list(cut_batches(lengths, TokenBudget(tokens)))) <= cost(full_batches(lengths, tokens)) + 1e-6


@given(st.lists(st.integers(1, 60), max_size=60), st.integers(60, 600))
def test_a_model_that_does_not_pad_gets_as_few_batches_as_possible(lengths: list[int], tokens: int) -> None:
    batches = list(cut_batches(lengths, TokenBudget(tokens), padded=False))
    assert len(batches) == len(full_batches(lengths, tokens))


def full_batches(lengths: list[int], tokens: int) -> list[list[int]]:
    order, batches = sorted(range(len(lengths)), key=lambda index: -lengths[index]), []
    while order:
        rows = tokens // lengths[order[0]]
        batches.append(order[:rows])
        order = order[rows:]
    return batches


def test_a_batch_ends_where_padding_would_cost_more_than_a_call() -> None:
    """One text of 40 and ten of 4: apart they are 40 + 40 tokens and two calls, together 440 and one."""
    assert list(cut_batches([4] * 10 + [40], TokenBudget(800))) == [[10], list(range(10))]
    assert len(list(cut_batches([4] * 10 + [6], TokenBudget(800)))) == 1


def test_the_cost_of_a_call_is_measured_on_small_batches() -> None:
    """A thousandth of a second per token in full batches; small ones of 64 tokens take 0.1 seconds longer than that. A
    machine that is busy all the time changes nothing.
    """
    for slower in (1, 7):
        budget = TokenBudget()
        assert budget.call_tokens == 64
        budget.observe(512, slower * 0.512)
        for _ in range(4):
            budget.observe(64, slower * 0.164)
        assert round(budget.call_tokens) == 100


def test_nothing_measured_enters_a_fixed_budget() -> None:
    budget = TokenBudget(512)
    budget.observe(512, 0.512)
    for _ in range(9):
        budget.observe(64, 100.0)
    assert (budget.tokens, budget.call_tokens, budget.tokens_within(1.0)) == (512, 64, 0)


def test_how_quick_a_model_is_is_measured_on_full_batches() -> None:
    budget = TokenBudget()
    assert budget.tokens_within(1.0) == 0
    budget.observe(64, 9.0)
    budget.observe(512, 0.25)
    budget.observe(512, 0.75)
    assert budget.tokens_within(0.5) == 512


def test_what_is_left_is_cut_anew_when_the_budget_shrinks() -> None:
    budget = TokenBudget(400)
    batches = cut_batches([40] * 20, budget)
    assert len(next(batches)) == 10
    budget.halve()
    assert [len(batch) for batch in batches] == [5, 5]


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
