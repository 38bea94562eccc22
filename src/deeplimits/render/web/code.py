"""Python source in colours: keywords, strings, comments, numbers and what is being defined."""

import html
import io
import keyword
import token
import tokenize

CLASSES = {token.STRING: "s", token.COMMENT: "c", token.NUMBER: "n"}


def coloured(source: str) -> str:
    """Source code as HTML; code that cannot be read stays without colours.

    >>> coloured("def f(): return 1")
    '<span class="k">def</span> <span class="d">f</span>(): <span class="k">return</span> <span class="n">1</span>'
    """
    try:
        marked = list(_marked(source))
    except (tokenize.TokenError, SyntaxError):
        return html.escape(source)
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found, done = [], 0
    for look, (first_line, first), (last_line, last) in marked:
        begin, end = starts[first_line - 1] + first, starts[last_line - 1] + last
        found.append(html.escape(source[done:begin]))
        found.append(f'<span class="{look}">{html.escape(source[begin:end])}</span>')
        done = end
    return "".join(found) + html.escape(source[done:])


def _marked(source: str):
    defining = False
    for one in tokenize.generate_tokens(io.StringIO(source).readline):
        look = CLASSES.get(one.type, "")
        if token.tok_name[one.type].startswith("FSTRING"):
            look = "s"
        if one.type == token.NAME:
            look = "d" if defining else "k" if keyword.iskeyword(one.string) else ""
            defining = one.string in ("def", "class")
        if look and one.string:
            yield look, one.start, one.end
