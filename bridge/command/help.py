"""The help of a command in plain lines that fit the terminal, without the types of Python."""

from __future__ import annotations

import os
import shutil
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from inspect import cleandoc, unwrap
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from tflite_ort.base.optional import late
from tflite_ort.base.suggestions import suggestion
from tflite_ort.command.activity import activity
from tflite_ort.command.paths import guarding
from tflite_ort.command.terminal import complain, say
from tflite_ort.command.verb_table import (
    GROUPS,
    OPTION_SYNONYMS,
    OUTPUTS,
    SYNONYMS,
    VERBS,
    example_lines,
)

with late:
    from tflite_ort import schema
    from tflite_ort.base import hub

_WORDS: dict[Any, str] = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}
# Help begins at this column at most; on a terminal of fewer columns it has lines of its own.
_COLUMN, _NARROW = 34, 60
_WIDEST = 100

# Options that many verbs have: every verb tells them last, in this order.
_SHARED = (
    *("--seed", "--threads", "--provider", "--provider-option", "--hybrid", "--resolver"),
    *("--external-root", "--budget", "--json", "--help"),
)

# What is told of an option or a verb: how it is written, and the text.
Row = tuple[str, str]


class Told(NamedTuple):
    """What the help of a command says.

    Args:
        usage: how it is called.
        own: its options.
        shared: those of its options that many verbs have.
    """

    usage: str
    paragraphs: Sequence[str]
    arguments: Sequence[Row]
    own: Sequence[Row]
    shared: Sequence[Row]


class VerbCommand(TyperCommand):
    """A verb whose help is plain."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What the line of usage says after the verb."""
        return _usage(self, ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As of typer; an option whose value may be left out has ``-`` then, and where results go
        may be said by any of `OUTPUTS`."""
        args = self._with_output(args)
        known = {name for each in self.params for name in (*each.opts, *each.secondary_opts)}
        for name in (argument.partition("=")[0] for argument in args):
            if name not in known and (meant := OPTION_SYNONYMS.get(name)) in known:
                ctx.fail(f"There is no option {name}; did you mean {meant}?")
        optional = {name for each in self.params if _is_optional(each) for name in each.opts}
        whole: list[str] = []
        for argument, after in zip(args, [*args, "--"][1:], strict=True):
            whole.append(argument)
            if argument in optional and after.startswith("-") and after != "-":
                whole.append("-")
        return list(super().parse_args(ctx, whole))

    def _with_output(self, args: list[str]) -> list[str]:
        """The arguments by the verb's own name for where results go: an option, or OUT at the
        end."""
        options = {name for each in self.params if not _is_argument(each) for name in each.opts}
        own = [name for name in OUTPUTS if name in options][:1]
        if not own and not any(each.name == "out" for each in self.params):
            return args
        for place, argument in enumerate(args):
            name, equals, value = argument.partition("=")
            end = place + (1 if equals else 2)
            if name in OUTPUTS and name not in options and end <= len(args):
                given = [*own, value if equals else args[place + 1]]
                return [*args[:place], *args[end:], *given]
        return args

    def invoke(self, ctx: Any) -> Any:
        """Run the verb, and show so if it takes long."""
        with activity.during(str(ctx.info_name)):
            try:
                _find_models(ctx.params)
                with guarding(ctx):
                    return super().invoke(ctx)
            except (schema.ModelError, schema.VersionError, schema.ExportError) as error:
                complain(error, _sole_model(ctx.params))
                raise typer.Exit(1) from error

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        told = self.told(ctx)
        sections = {"Arguments": told.arguments, "Options": (*told.own, *told.shared)}
        _print(told, sections, str(ctx.info_name))

    def told(self, ctx: Any) -> Told:
        """What the help says."""
        words = _words(self.callback)
        options = sorted((e for e in self.get_params(ctx) if not _is_argument(e)), key=_option_rank)
        own = [_option(each, words) for each in options if not _option_rank(each)]
        shared = [_option(each, words) for each in options if _option_rank(each)]
        arguments = [_argument(each) for each in self.params if _is_argument(each)]
        return Told(*_heading(ctx, self.help), arguments, own, shared)


def _find_models(given: dict[str, Any]) -> None:
    """Put files in the place of references to models of Hugging Face."""
    for name in ("model", "models", "bundle"):
        value = given.get(name)
        if isinstance(value, list | tuple):
            given[name] = [_local_path(each) for each in value]
        elif value is not None:
            given[name] = _local_path(value)
            if given[name] is not value and given.get("out", "") is None:
                given["out"] = os.curdir  # and not beside the model, in the cache


def _local_path(path: Any) -> Any:
    """A path, as a text still or as what it becomes, of a file."""
    return path if os.path.lexists(path) else hub.local_file(os.fspath(path)) or path


def _sole_model(given: Mapping[str, Any]) -> Path | None:
    """The model that a verb is about, if it is about one."""
    models = given.get("models") or [given.get("model")]
    return models[0] if len(models) == 1 else None


class VerbGroup(TyperGroup):
    """Several verbs, whose help is plain; one that is not there is answered with the nearest."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that the first argument names."""
        verbs = self.list_commands(ctx)
        if not (args[0] in verbs or args[0].startswith("-") or ctx.resilient_parsing):
            meant = SYNONYMS.get(args[0].lower(), "") if "run" in verbs else ""
            if "run" in verbs and os.path.isfile(args[0]):
                meant = f"run {args[0]}"
            near = f"; did you mean {meant!r}?" if meant else suggestion(args[0], verbs)
            ctx.fail(f"There is no command {args[0]!r}{near}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        options = [_option(each, {}) for each in self.get_params(ctx)]
        verbs = {name: _summary(self.get_command(ctx, name)) for name in self.list_commands(ctx)}
        told = Told(*_heading(ctx, self.help), [], options, [])
        groups = {
            title: [(name, verbs[name]) for name in names if name in verbs]
            for title, names in (GROUPS.items() if "run" in verbs else [("Commands", verbs)])
        }
        _print(told, {"Options": told.own, **groups}, str(ctx.info_name))


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _option_rank(option: Any) -> int:
    """Where the help tells an option: those of a verb alone come first, as they are declared."""
    return max(_SHARED.index(name) + 1 if name in _SHARED else 0 for name in option.opts)


def _is_optional(option: Any) -> bool:
    """Whether its value may be left out, which its help says by brackets."""
    return not _is_argument(option) and (option.metavar or "") == "[FILE]"


def _usage(command: TyperCommand, ctx: Any) -> list[str]:
    pieces = ["[OPTIONS]"]
    for each in filter(_is_argument, command.params):
        name = _name(each)
        pieces.append(name if each.required else f"[{name}]")
    return pieces


def _name(argument: Any) -> str:
    """How an argument is written, with dots where there may be several."""
    name = str(argument.metavar or argument.name.upper())
    return f"{name}..." if argument.nargs != 1 else name


def _argument(argument: Any) -> Row:
    return _name(argument), argument.help or ""


def _option(option: Any, words: dict[str, str]) -> Row:
    names = ", ".join(sorted(option.opts, key=len))
    if option.secondary_opts:
        names += f" / {', '.join(option.secondary_opts)}"
    if not option.is_flag:
        names += f" {option.metavar or words.get(option.name, option.name.upper())}"
    notes = [*_range(option), *_default(option), *(["required"] if option.required else [])]
    text = option.help or ""
    return names, f"{text} [{'; '.join(notes)}]".strip() if notes else text


def _range(option: Any) -> Iterator[str]:
    """The numbers that an option takes, where they have two ends."""
    # Versions of typer keep them at the option or at its type.
    kept = vars(getattr(option, "type", None) or option) | vars(option)
    least, most = kept.get("min"), kept.get("max")
    if least is not None and most is not None:
        yield f"{least} to {most}"


def _default(option: Any) -> Iterator[str]:
    default = option.default
    if option.secondary_opts and isinstance(default, bool):
        names = option.opts if default else option.secondary_opts
        yield f"default: {names[0].lstrip('-')}"
    elif not (default is None or default == "" or callable(default) or option.is_flag):
        yield f"default: {default.value if isinstance(default, Enum) else default}"


def _words(function: Any) -> dict[str, str]:
    """The placeholder that the help shows for each parameter of a verb's function."""
    hints = typing.get_type_hints(unwrap(function))
    return {name: _word(hint) for name, hint in hints.items()}


def _word(hint: Any) -> str:
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "|".join(str(each.value) for each in hint)
    if typing.get_origin(hint) in (list, typing.Union, types.UnionType):
        return _word(typing.get_args(hint)[0])
    return _WORDS.get(hint, "VALUE")


def _summary(command: Any) -> str:
    return " ".join(cleandoc(command.help or "").split("\n\n")[0].split())


def _example(name: str, width: int) -> Iterator[str]:
    """The lines of an example of a verb; none of what is none."""
    if name in VERBS:
        yield from ("", "Example:")
        for line in example_lines(name):
            left = " " * (2 + len(line) - len(line.lstrip()))
            after = f"{left}    "
            yield from wrap(line.strip(), width, initial_indent=left, subsequent_indent=after)


def _print(told: Told, sections: Mapping[str, Sequence[Row]], name: str) -> None:
    """Print a help.

    Args:
        name: of the verb.
    """
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    lines = _hanging(f"Usage: {told.usage}", width)
    for paragraph in told.paragraphs:
        lines += ["", *wrap(paragraph, width)]
    for title, rows in sections.items():
        if rows:
            lines += ["", f"{title}:", *_table(rows, width)]
    say(*lines, *_example(name, width))


def _heading(ctx: Any, text: str | None) -> tuple[str, list[str]]:
    """The usage of a command, and the paragraphs that tell of it."""
    usage = " ".join([ctx.command_path, *ctx.command.collect_usage_pieces(ctx)])
    return usage, [" ".join(each.split()) for each in cleandoc(text or "").split("\n\n")]


def _hanging(text: str, width: int) -> list[str]:
    return wrap(text, width, subsequent_indent="    ", break_on_hyphens=False)


def _table(rows: Sequence[Row], width: int) -> Iterator[str]:
    if width < _NARROW:
        for left, text in rows:
            yield from wrap(left, width, initial_indent="  ", subsequent_indent="    ")
            yield from wrap(text, width, initial_indent="      ", subsequent_indent="      ")
        return
    column = min(_COLUMN, max(len(left) for left, _ in rows) + 4)
    for left, text in rows:
        lines = wrap(text, width - column) or [""]
        if len(left) + 4 > column:
            yield f"  {left}"
        else:
            lines[0] = f"  {left}".ljust(column) + lines[0]
            yield lines.pop(0).rstrip()
        yield from (" " * column + line for line in lines)
