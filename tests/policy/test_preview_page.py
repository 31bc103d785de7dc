"""The preview as a page: it says what it holds, shows text as text, and asks no network for anything."""

from __future__ import annotations

import stat
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.app.policy.page import escaped, require_page, write_page
from gateway.app.policy.registry import REGISTRY
from gateway.app.preview.files import FilePreview
from gateway.app.preview.page import CLASSES, preview_page
from gateway.app.preview.rows import Outcome, Row
from gateway.errors import UsageError
from gateway.policy import Policy, load_policy
from gateway.settings import SHIPPED_POLICIES

PNG = b"\x89PNG\r\n\x1a\n synthetic"
FETCHING = {"src", "href", "action", "data", "poster", "background", "srcset", "formaction"}
HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</td></table><iframe src=//evil.example>",
    "&lt;b&gt; &amp; ]]> <!-- --> <style>*{display:none}</style>",
    "javascript:alert(1)",
    "a\u202egnp.exe\x00\x1b[31m",
)


class Page(HTMLParser):
    """Elements, what they fetch, and the text of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.fetched: list[str] = []
        self.handlers: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in FETCHING]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(SHIPPED_POLICIES / "research-basic.yaml", REGISTRY)


def a_row(text: str, outcome: Outcome = Outcome.REPLACED) -> Row:
    return Row("00100010", 0, 0x00100010, "PN", "", text, text, outcome, 0, "Z", text)


def a_preview(text: str, pictures: tuple[bytes, ...] = ()) -> FilePreview:
    rows = tuple(a_row(text, outcome) for outcome in Outcome)
    private = Row("00091001", 0, 0x00091001, "LO", text, text, None, Outcome.REMOVED, 0, "X", "why")
    counts = dict.fromkeys(Outcome, 1)
    return FilePreview(Path(f"/x/{text}"), "1.2.3", (*rows, private), counts, gate_reason="", pictures=pictures)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_an_object_is_shown_and_does_nothing(policy: Policy, text: str) -> None:
    made = preview_page(policy, [a_preview(text)], keyed=text)
    page, harmless = Page(made), Page(preview_page(policy, [a_preview("harmless")], keyed="harmless"))
    assert page.elements == harmless.elements
    assert page.handlers == []
    assert "script" not in page.elements
    assert not any(control in made for control in ("\x00", "\x1b", "\u202e"))


@given(st.text(max_size=80))
def test_escaping_gives_back_the_same_text_and_no_markup(text: str) -> None:
    page = Page(f"<p title='{escaped(text)}'>{escaped(text)}</p>")
    assert page.elements == ["p"]
    assert not set(escaped(text)) & set("<>\"'\n\x00")


def test_a_page_fetches_nothing_and_forbids_everything_else(policy: Policy) -> None:
    made = preview_page(policy, [a_preview("x", (PNG,))], keyed="k")
    page = Page(made)
    assert set(page.elements) & {"link", "script", "iframe", "object", "embed", "form", "base", "video"} == set()
    assert all(value.startswith(("#file-", "data:image/png;base64,")) for value in page.fetched)
    assert "url(" not in made
    assert "@import" not in made
    assert "default-src 'none'" in made
    assert len(set(page.ids)) == len(page.ids)
    assert all(f'id="{target[1:]}"' in made for target in page.fetched if target.startswith("#"))


def test_the_page_says_what_it_holds_and_tells_outcomes_by_sign_and_word(policy: Policy) -> None:
    made = preview_page(policy, [a_preview("x")], keyed="with a key of this run")
    page = Page(made)
    assert "This page holds the identifying values" in page.text
    assert "holds identifying values" in made.partition("@page")[2]  # on every printed sheet
    assert policy.digest in page.text
    assert "with a key of this run" in page.text
    for outcome, name in CLASSES.items():
        assert f'tr class="{name}"' in made
        assert f'<abbr title="{outcome}">' in made
        assert f'id="show-{name}" checked' in made


def test_with_changes_only_what_stays_is_left_out(policy: Policy) -> None:
    made = preview_page(policy, [a_preview("x")], keyed="k", changes=True)
    assert 'tr class="kept"' not in made
    assert 'tr class="removed"' in made


def test_a_file_that_is_held_says_why_and_what_to_do(policy: Policy) -> None:
    held = FilePreview(Path("a.dcm"), reason="missing_patient_id", at="00100020")
    with_it = FilePreview(Path("b.dcm"), held_by=Path("a.dcm"))
    by_gate = FilePreview(Path("c.dcm"), gate_reason="residual_identifier", gate_at="(0010,0010)")
    text = Page(preview_page(policy, [held, with_it, by_gate], keyed="k")).text
    assert "an object has no Patient ID at 00100020; correct it at the PACS" in text
    assert "held with its study, because of a.dcm" in text
    assert "held by the gate, residual_identifier" in text


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "p.html"
    write_page(path, "<!doctype html>\nx")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    require_page(path)  # a page may be written again
    write_page(path, "<!doctype html>\ny")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.html"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a.dcm", "one of the files to look at"),
        ("b.txt", "no page"),
        ("folder", "is a folder"),
        ("none/p.html", "exist"),
    ],
)
def test_nothing_but_a_page_is_ever_replaced(tmp_path: Path, name: str, says: str) -> None:
    original = tmp_path / "a.dcm"
    original.write_bytes(bytes(128) + b"DICM")
    (tmp_path / "b.txt").write_text("notes")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=says):
        require_page(tmp_path / name, [original])
    (tmp_path / "link.html").symlink_to(original)
    with pytest.raises(UsageError, match="one of the files"):
        require_page(tmp_path / "link.html", [original])
