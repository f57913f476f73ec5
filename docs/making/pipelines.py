"""The reference of pipelines.yaml: read from the schema and its texts.

`python -m docs.making.pipelines` writes the page and docs/pipelines.schema.json;
tests/run/config/test_reference.py compares both.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

from curvote.pipeline.config.reference import Setting, list_settings, setting_texts
from curvote.pipeline.config.schema import SCHEMA, editor_schema

PAGE = Path(__file__).parents[1] / "pipelines.md"
STORED_SCHEMA = PAGE.with_name(SCHEMA)
TOP = "Top level of a pipeline"
INTRODUCTION = """# pipelines.yaml, setting by setting

Every setting, with what it is for, what may stand there, its default and an example. A
path such as `project.size` is what `--set` takes, and below `pipelines:` and the
pipeline's name it is written as

```yaml
pipelines:
  mine:
    source: {name: simulated}
    clients: {train: 500, vote: 2500, test: 500}
    project: {basis: bspline, size: 4}
```

`curvote explain project.size` prints one setting, `curvote explain size` all that are
called so, and an editor with a YAML language server shows the same while you type, as
`curvote init` writes the [schema](own-data.md#in-an-editor) beside pipelines.yaml.
Words such as *client* or *report* stand in the [glossary](glossary.md).

This page is made from the program by `python -m docs.making.pipelines`.
"""


def text() -> str:
    """Return the page: a table of the parts, then one for each of them."""
    settings = list_settings(editor_schema())
    texts = {part: entry["text"].strip() for part, entry in setting_texts().items()}
    texts[TOP] = "What it reads, for whom it is, and the parts below."
    ordered = sorted(settings, key=_place)
    parts = {
        part: [s for s in members if not _is_source_name(s)]
        for part, members in ((p, list(m)) for p, m in groupby(ordered, _part))
    }
    rows = [f"| {_link(part)} | {_cell(texts[part])} |" for part in parts]
    tables = [_section(part, texts[part], members) for part, members in parts.items()]
    index = "\n".join(["## Parts", "", "| part | what it is for |", "|---|---|", *rows])
    return "\n".join([INTRODUCTION, index, "", *tables])


def _part(setting: Setting) -> str:
    """Return the part of the file with whose table a setting stands."""
    names = setting.path.split(".")
    if names[0] == "source" and len(names) > 2:
        return ".".join(names[:2])
    if names[0] == "source":
        return "source"
    return names[0] if len(names) > 1 else TOP


def _place(setting: Setting) -> int:
    """Put what stands at the top of a pipeline first, runtime and defaults last."""
    order = {TOP: 0, "runtime": 3, "defaults": 4}
    part = _part(setting)
    return order.get(part, 2 if part.startswith("source") else 1)


def _is_source_name(setting: Setting) -> bool:
    names = setting.path.split(".")
    return len(names) > 2 and names[0] == "source" and names[2:] == ["name"]


def _section(part: str, words: str, settings: list[Setting]) -> str:
    title = part if part == TOP else f"`{part}`"
    if part.startswith("source."):
        title = f"`source: {{name: {part.removeprefix('source.')}}}`"
    head = ["| setting | what may stand there | what it is for |", "|---|---|---|"]
    rows = [_row(setting) for setting in settings]
    table = [*head, *rows] if rows else ["No more settings."]
    return "\n".join([f"({_anchor(part)})=", f"## {title}", "", words, "", *table, ""])


def _row(setting: Setting) -> str:
    path, names = setting.path, setting.path.split(".")
    if names[0] == "source" and len(names) > 2:
        path = ".".join(["source", *names[2:]])
    values = _cell(setting.values)
    unit = f" ({setting.unit})" if setting.unit else ""
    examples = "; ".join(f"`{example}`" for example in setting.lines)
    words = f"{setting.text} Example: {examples}" if examples else setting.text
    default = f"; default `{_cell(setting.default)}`" if setting.default else ""
    return f"| `{path}` | {values}{unit}{default} | {_cell(words)} |"


def _link(part: str) -> str:
    title = part if part == TOP else f"`{part}`"
    return f"[{title}](#{_anchor(part)})"


def _anchor(part: str) -> str:
    return f"setting-{part.lower().replace('.', '-').replace(' ', '-')}"


def _cell(words: str) -> str:
    return words.replace("|", r"\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
    schema = json.dumps(editor_schema(), indent=1)
    STORED_SCHEMA.write_text(f"{schema}\n", encoding="utf-8")
