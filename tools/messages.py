"""The translations of the pages: `django_cogworker/locale/<language>/LC_MESSAGES/django.po`, and the `.mo` made of it.

python3 tools/messages.py              bring all catalogues up to date with the code, compile them, and list what
                                       has no translation yet
python3 tools/messages.py add it       begin another language

Needs Django and gettext's tools (Debian: `gettext`). Nothing is guessed: what is new is empty, what is gone is
dropped, and the tests fail until all is translated.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from tools import catalogue
from tools.catalogue import Catalogue

PACKAGE = Path(__file__).parent.parent / "django_cogworker"
LOCALE = PACKAGE / "locale"


def languages() -> list[str]:
    """As the folders are named: `de`, `zh_Hans`."""
    return sorted(each.name for each in LOCALE.iterdir() if each.is_dir())


def path_of(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "django.po"


def extract(folder: Path) -> Path:
    """All messages of the package, in a `.pot` in this folder; the package itself stays as it is."""
    copy = folder / "django_cogworker"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("locale", "__pycache__"))
    (copy / "locale").mkdir()
    command = [sys.executable, "-m", "django", "makemessages", "--locale", "en", "--keep-pot"]
    _run(*command, "--no-wrap", "--add-location", "file", cwd=copy)
    template = copy / "locale" / "django.pot"
    # With its date every run would change all catalogues.
    lines = template.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = (each for each in lines if not each.startswith('"POT-Creation-Date'))
    template.write_text("".join(kept), encoding="utf-8")
    return template


def update(language: str, template: Path) -> Catalogue:
    """Bring a catalogue up to date. One that is not there is begun."""
    path = path_of(language)
    if not path.exists():
        path.parent.mkdir(parents=True)
        path.write_text(_beginning(language), encoding="utf-8")
    options = ("--quiet", "--no-wrap", "--no-fuzzy-matching", "--backup=none")
    _run("msgmerge", *options, "--update", str(path), str(template))
    _run("msgattrib", "--no-wrap", "--no-obsolete", "--output-file", str(path), str(path))
    compile_one(path, path.with_suffix(".mo"))
    return catalogue.read(path)


def compile_one(path: Path, target: Path) -> None:
    """Fails where gettext finds a fault, such as a placeholder that is none."""
    _run("msgfmt", "--check", "--output-file", str(target), str(path))


def _beginning(language: str) -> str:
    """A header with the plural forms that Django has for the language."""
    from django.contrib import admin

    theirs = Path(str(admin.__file__)).parent / "locale" / language / "LC_MESSAGES" / "django.po"
    if not theirs.exists():
        sys.exit(
            f"Django has no translation of the admin named {language!r}; see its folder locale."
        )
    found = re.search(r"Plural-Forms: ([^;]+;[^;]+;)", catalogue.read(theirs).header)
    plural = found[1] if found else "nplurals=2; plural=(n != 1);"
    fields = {
        "Project-Id-Version": "django-cogworker",
        "Report-Msgid-Bugs-To": "",
        "PO-Revision-Date": "",
        "Last-Translator": "",
        "Language-Team": "",
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": plural,
    }
    lines = "".join(f'"{name}: {value}\\n"\n' for name, value in fields.items())
    return f'msgid ""\nmsgstr ""\n{lines}\n'


def _run(*command: str, cwd: Path | None = None) -> None:
    # Settings of whoever calls could not be imported from there.
    env = {name: each for name, each in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")


def main(argv: list[str]) -> int:
    wanted = languages()
    if argv[:1] == ["add"] and len(argv) == 2:
        wanted = argv[1:]
    elif argv:
        print(__doc__)
        return 2
    missing = 0
    with tempfile.TemporaryDirectory() as folder:
        template = extract(Path(folder))
        for language in wanted:
            for each in update(language, template).entries:
                if not all(each.translations.values()):
                    missing += 1
                    print(f"{path_of(language)}:{each.line}: no translation of {each.text!r}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
