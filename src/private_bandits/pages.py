"""Pages for a browser. Their HTML is in templates, never in code: what code hands over is text, and is escaped."""

from __future__ import annotations

from typing import Any

from private_bandits.errors import MissingExtra
from private_bandits.loading import require


def render(package: str, template: str, /, **values: Any) -> str:
    """Return a page: a template in the folder `page` of the package, filled in with the values.

    All text is escaped unless the template marks it as safe. A value that the template misses is an error.
    """
    require("a page", "audit", "jinja2")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package, "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # Of the filter tojson: short, in the order given, and no NaN, which no browser reads.
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment.get_template(template).render(values)


def in_notebook(package: str, template: str, /, **values: Any) -> str | None:
    """Return a part of a page, as `render` does; None without jinja2, for which a notebook shows the repr."""
    try:
        return render(package, template, **values)
    except MissingExtra:
        return None
