"""Formulas as MathML, which browsers draw by themselves: pages load no script for them and ask nothing of any network."""

import re

from docutils import nodes


def written(source: str, display: str) -> str:
    """A formula in LaTeX as MathML; the number that `\\tag` gives it stands behind it."""
    from latex2mathml.converter import convert

    tags = re.findall(r"\\tag\{([^{}]*)\}", source)
    formula = convert(re.sub(r"\\tag\{[^{}]*\}", "", source), display=display)
    return formula + "".join(f'<span class="eqno">({tag})</span>' for tag in tags)


def inline(self, node) -> None:
    self.body.append(f'<span class="math notranslate nohighlight">{written(node.astext(), "inline")}</span>')
    raise nodes.SkipNode


def display(self, node) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    self.body.append(f"{written(node.astext(), 'block')}</div>")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
