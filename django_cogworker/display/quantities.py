"""Numbers for people: durations, sizes, counts. What is not known is a dash."""

from __future__ import annotations

import math

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import npgettext

DASH = "\N{EN DASH}"


def duration(seconds: float | None) -> str:
    """`8 ms`, `4.2 s`, `3 min 20 s`, `2 h 34 min`, `3 d 4 h`: never more than two units."""
    if seconds is None or not math.isfinite(seconds):
        return DASH
    seconds = max(0.0, seconds)
    if seconds < 0.9995:
        return _("%(number)s ms") % {"number": f"{seconds * 1000:.0f}"}
    if seconds < 59.95:
        return _("%(number)s s") % {"number": _decimal(seconds)}
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return _("%(minutes)d min %(seconds)d s") % {"minutes": minutes, "seconds": rest}
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return _("%(hours)d h %(minutes)d min") % {"hours": hours, "minutes": minutes}
    days, hours = divmod(hours, 24)
    return _("%(days)d d %(hours)d h") % {"days": days, "hours": hours}


def size(number: float | None) -> str:
    """Bytes in the unit that leaves one to four digits: `312 B`, `1.4 kB`, `12.0 MB`."""
    if number is None:
        return DASH
    if number < 1000:
        return _("%(number)s B") % {"number": f"{number:.0f}"}
    for text in (_("%(number)s kB"), _("%(number)s MB"), _("%(number)s GB")):
        number /= 1000
        if number < 999.95:
            return text % {"number": _decimal(number)}
    return _("%(number)s TB") % {"number": _decimal(number / 1000)}


def count(number: int | None) -> str:
    """A whole number with its thousands told apart, as the language has it."""
    if number is None:
        return DASH
    return str(number_format(number, use_l10n=True, force_grouping=True))


def minutes_text(number: int) -> str:
    """As it stands behind "in"."""
    text = npgettext("in …", "%(number)s minute", "%(number)s minutes", number)
    return text % {"number": count(number)}


def share(part: float, whole: float) -> str:
    """`12 %`."""
    return DASH if not whole else _("%(number)s %%") % {"number": f"{100 * part / whole:.0f}"}


def _decimal(number: float) -> str:
    return str(number_format(number, decimal_pos=1, use_l10n=True))
