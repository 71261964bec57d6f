"""`stockade rules`: word replacement rules, applied to data or held against models."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stockade.cli.inputs import (
    data_options,
    defense_option,
    input_options,
    limit_option,
    model_options,
    seed_option,
    speed_options,
)
from stockade.cli.rules_mine import explain, mine
from stockade.cli.screen import for_screen, say
from stockade.core.errors import InputError, OptionError

if TYPE_CHECKING:
    from stockade.attacks.rules import Rules
    from stockade.experiment.result import Result
    from stockade.workflows.rules import AppliedRules

EXIT_OF_VERDICT = {"pass": 0, "fail": 1, "cannot tell": 3}
_FILE = click.Path(path_type=Path)
_JUDGES = click.Choice(["any-prefix", "final"])
_EXAMPLES = 3

share_option = click.option(
    "--budget", type=float, default=0.3, show_default=True, help="The largest share of the words that may change."
)


@click.group("rules")
def command() -> None:
    """Word replacement rules: mine them, explain them, apply them to texts, test whether models withstand them.

    Rules are a file of JSON lines that you can read, edit and share; docs/rules.md describes it.
    """


command.add_command(mine)
command.add_command(explain)


@command.command("apply")
@click.argument("rules", type=_FILE)
@click.argument("data")
@share_option
@click.option("--model", "models", multiple=True, metavar="MODEL", help="A model to fool with the texts; repeat.")
@click.option(
    "--judge",
    type=_JUDGES,
    help="With --model: a text succeeds after any of its replacements, or after the last.  [default: any-prefix]",
)
@limit_option
@seed_option
@click.option(
    "--out",
    type=_FILE,
    help="The csv file.  [default: standard output]  With --model: the job's folder.  [default: runs/rules-DATE-TIME]",
)
@input_options
def apply(rules: Path, data: str, budget: float, models: tuple[str, ...], **options: Any) -> int:
    """Apply RULES to the texts of DATA, each by the rules of its own class.

    Without a model the texts are written as csv, with their labels, the originals and the changed words; the file can
    be used as data. With --model the rules attack that model, and the result is a job like that of `stockade attack`
    (of `stockade evaluate` for several models): it can be resumed, reported and exported.

    \b
    stockade rules apply rules.jsonl reviews.csv --out changed.csv
    stockade rules apply rules.jsonl builtin:reviews --model builtin:sentiment-cnn --model builtin:sentiment-lstm
    """
    if models:
        from stockade.cli.finish import output_folder, run_job

        attack = _attack(rules, budget, options["judge"])
        out = output_folder(options["out"], "rules")
        return run_job(out, lambda observer: _run(attack, models, data, options, out, observer))
    if options["judge"] is not None:
        raise OptionError("--judge says when a model is asked, and there is none: add --model MODEL, or leave it out.")
    from stockade.experiment.export import Layout, export, export_to
    from stockade.workflows.rules import apply_rules

    applied = apply_rules(
        rules,
        data,
        budget=budget,
        limit=options["limit"],
        seed=options["seed"],
        data_options=data_options(options),
    )
    layout = Layout.of_row(next(iter(applied)).row())
    changed: Counter[bool] = Counter()
    rows = _rows(applied, changed)
    if options["out"] is None:
        export(for_screen(rows, "csv"), "csv", sys.stdout.buffer, layout)
    else:
        export_to(rows, "csv", options["out"], layout)
    written = "" if options["out"] is None else f", written to {options['out']}"
    say(f"{changed[True]:,} of {len(applied):,} texts changed{written}.", err=True)
    _report_idle_rules(applied)
    return 0


def _rows(applied: AppliedRules, changed: Counter[bool]) -> Iterator[dict[str, Any]]:
    """The rows of the csv file; `changed` counts them by whether a rule changed the text."""
    for text in applied:
        changed[bool(text.edits)] += 1
        yield text.row()


def _attack(rules: Path, budget: float, judge: str | None) -> Rules:
    from stockade.attacks.rules import Rules

    return Rules(file=str(rules), budget=budget, judge=judge or "any-prefix")  # type: ignore[arg-type]  # click checks


def _run(
    attack: Rules, models: tuple[str, ...], data: str, options: dict[str, Any], out: Path | None, observer: Any
) -> Result:
    """Attack one model, or evaluate several on the same texts."""
    from stockade.workflows.attack import attack as attack_model
    from stockade.workflows.evaluate import evaluate

    shared: dict[str, Any] = {
        **{name: options[name] for name in ("limit", "seed", "max_words", "mlm", "encoder")},
        **speed_options(options),
        "out": out,
        "resume": options.get("resume", False),
        "data_options": data_options(options),
        "model_options": model_options(options),
        "observer": observer,
    }
    if len(models) > 1:
        return evaluate(list(models), data, [attack], [], **shared)
    defenses = list(options.get("defenses", ())) or None
    result: Result = attack_model(models[0], data, attack, defenses=defenses, similarity=False, **shared)
    return result


def _report_idle_rules(applied: AppliedRules) -> None:
    """Say on standard error which rules change nothing."""
    unused = applied.unused_rules()
    if unused:
        examples = "; ".join(f"{rule.label}: {rule.word} -> {rule.replacement}" for rule in unused[:_EXAMPLES])
        more = " …" if len(unused) > _EXAMPLES else ""
        say(
            f"{len(unused):,} of {len(applied.rules):,} rules have a word that no text of their class contains: "
            f"{examples}{more}",
            err=True,
        )
    idle = sum(rule.salience <= 0 for rule in applied.rules.rules)
    if idle:
        say(f"{idle:,} of {len(applied.rules):,} rules have no positive salience and are never applied.", err=True)


@command.command("test")
@click.argument("model")
@click.argument("data")
@click.argument("rules", type=_FILE)
@share_option
@click.option(
    "--judge",
    type=_JUDGES,
    default="any-prefix",
    show_default=True,
    help="A text succeeds after any of its replacements, or after the last.",
)
@click.option(
    "--max-success",
    type=float,
    default=0.2,
    show_default=True,
    help="The largest share of the changed texts that may fool the model.",
)
@click.option(
    "--min-texts", type=int, default=30, show_default=True, help="The fewest changed texts that say anything."
)
@defense_option
@limit_option
@seed_option
@click.option("--out", type=_FILE, help="Keep the attack in this folder.  [default: nothing is kept]")
@click.option("--resume", is_flag=True, help="Go on with the attack in --out.")
@input_options
def check(
    model: str, data: str, rules: Path, budget: float, judge: str, max_success: float, min_texts: int, **options: Any
) -> int:
    """Test MODEL against RULES on DATA, for example in CI.

    Counted are the texts that the model gets right and the rules change. Exit code 0: the share that fools the model
    is at most --max-success, with its whole 95 % interval; 1: it is above, with its whole interval; 3: there are too
    few texts to tell; 2: an error.

    \b
    stockade rules test builtin:sentiment-cnn builtin:reviews rules.jsonl --max-success 0.3
    """
    from stockade.cli.progress import watch
    from stockade.workflows.attack.result import AttackResult
    from stockade.workflows.rules import check_limits, judge_rules

    check_limits(max_success, min_texts)
    if options["resume"] and options["out"] is None:
        raise OptionError("--resume needs the folder of the attack: name it with --out.")
    attack = _attack(rules, budget, judge)
    with watch() as observer:
        result = _run(attack, (model,), data, options, options["out"], observer)
    problem = result.problem()
    if problem is not None:
        raise InputError(problem)
    assert isinstance(result, AttackResult)
    outcome = judge_rules(result, max_success, min_texts)
    outcome.document().print()
    return EXIT_OF_VERDICT[outcome.verdict]
