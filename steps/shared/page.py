"""Self-contained HTML pages, for light and dark screens: a paper's tables, and the ledger."""

from collections.abc import Sequence
from html import escape
from itertools import groupby

from steps.shared.claims import effect_text
from steps.shared.table_spec import Table
from steps.shared.tables import ELSEWHERE, LEGEND, Row, claims_elsewhere, layout, paper_effect_text

STYLE = """
:root { color-scheme: light dark; --text: #1a1a1a; --back: #fff; --grey: #6b6b6b; --line: #d9d9d9;
  --good: #00694f; --bad: #a63d00; --open: #5a5a5a }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6e6; --back: #16181b; --grey: #9a9a9a;
  --line: #3a3d42; --good: #4cc9a1; --bad: #ff9a5c; --open: #b5b5b5 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back);
  max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2.5rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; margin: .5rem 0;
  font-variant-numeric: tabular-nums }
caption { text-align: left; color: var(--grey); padding-bottom: .3rem }
th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; font-weight: normal }
thead th { font-weight: 600; border-bottom: 2px solid var(--line) }
th:first-child { text-align: left; padding-left: 0 }
.paper { color: var(--grey) } p.paper { font-size: .87rem; margin: .3rem 0 }
ul { list-style: none; padding: 0 } li { margin: .7rem 0 }
.verdict { font-weight: 600; border: 1px solid; border-radius: .3rem; padding: 0 .4rem;
  color: var(--open) } .holds { color: var(--good) } .fails { color: var(--bad) }
"""
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
{content}
</html>
"""


def render_html(
    rows: Sequence[Row], spec: Sequence[Table], claims: Sequence[Row], *, title: str
) -> str:
    """Return one self-contained page of the same content, readable on light and dark screens."""
    parts = [f"<h1>{escape(title)}</h1>"]
    for table in spec:
        parts.append(f"<section>\n<h2>{escape(table.title)}</h2>")
        for grid in layout(rows, table):
            caption = f"<caption>{escape(grid.caption)}</caption>\n" if grid.caption else ""
            head = f"<thead>{_html_line(grid.header, 'th')}</thead>\n"
            lines = "\n".join(_html_line(line, "td") for line in grid.lines)
            body = f"<table>\n{caption}{head}<tbody>\n{lines}\n</tbody>\n</table>"
            parts.append(f'<div class="scroll">{body}</div>')
            parts += [f'<p class="paper">{escape(" ".join(grid.notes))}</p>'] if grid.notes else []
        parts += _html_claims([claim for claim in claims if claim["table"] == table.id])
        parts.append("</section>")
    if others := claims_elsewhere(spec, claims):
        parts += [f"<h2>{ELSEWHERE}</h2>", *_html_claims(others)]
    return _page(title, [*parts, f'<p class="paper">{escape(LEGEND)}</p>'])


def render_ledger(claims: Sequence[Row], *, summary: str) -> str:
    """Return one page of the claims of all papers, paper by paper; `summary` heads them."""
    title = "Ledger: every claim with its verdict"
    parts = [f"<h1>{title}</h1>", f"<p>{escape(summary)}</p>"]
    for paper, own in groupby(claims, key=lambda claim: claim["paper"]):
        parts += [f"<h2>{escape(paper)}</h2>", *_html_claims(list(own))]
    return _page(title, parts)


def _page(title: str, parts: Sequence[str]) -> str:
    return PAGE.format(title=escape(title), style=STYLE, content="\n".join(parts))


def _html_line(cells: Sequence[tuple[str, bool]], tag: str) -> str:
    shown = []
    for place, (text, of_paper) in enumerate(cells):
        element = "th" if place == 0 else tag
        kind = ' class="paper"' if of_paper else ""
        shown.append(f"<{element}{kind}>{escape(text)}</{element}>")
    return f"<tr>{''.join(shown)}</tr>"


def _html_claims(claims: Sequence[Row]) -> list[str]:
    return ["<ul>", *map(_html_claim, claims), "</ul>"] if claims else []


def _html_claim(claim: Row) -> str:
    kind = claim["verdict"].split()[0]
    badge = f'<span class="verdict {kind}">{escape(claim["verdict"])}</span>'
    details = [f"<b>{escape(effect_text(claim))}</b>"] if claim["effect"] is not None else []
    if paper := paper_effect_text(claim):
        details.append(f'<span class="paper">{escape(paper)}</span>')
    details += [escape(claim["note"])] if claim["note"] else []
    return f"<li>{badge} {escape(claim['statement'])}<br>{' · '.join(details)}</li>"
