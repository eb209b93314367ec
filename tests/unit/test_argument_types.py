"""Enums, dataclasses and model instances as arguments: what comes back, what is refused, what a rename does."""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
from types import ModuleType
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from django_cogworker import Job
from django_cogworker.exceptions import ArgumentError, InvalidOption, MissingRow, UnknownFormat
from django_cogworker.features.unique.digest import key_of
from django_cogworker.jobs.masking import visible_arguments
from django_cogworker.payload.arguments import check_tags, pack, unpack
from django_cogworker.payload.display import arguments_lines, arguments_text
from django_cogworker.payload.job import normalise
from django_cogworker.payload.references import ModelReference
from django_cogworker.testing import assert_enqueued, assert_not_enqueued, fake, inline
from tests.guests.models import Atlas, Book, Novel, Seat, Ticket
from tests.guests.types import Beneath, Case, Color, InitOnly, Level, Line, Parcel, Price, Right


class Echo(Job):
    def perform(self, *args: Any, **kwargs: Any) -> Any:
        return args, kwargs


class Own(enum.Enum):
    """Of a module that is no app, but has a job class."""

    HERE = 1


def sent(value: Any) -> Any:
    """What arrives of it, positional, by name and nested."""
    with fake():
        Echo.perform_async(value, [value], by={"name": (value,)})
        (args, kwargs) = Echo.perform_one()
    assert args[1][0] == kwargs["by"]["name"][0] == args[0]
    return args[0]


# -- enums and dataclasses


@pytest.mark.parametrize(
    "member",
    [
        *Color,
        Level.LOW,
        Own.HERE,
        Book.Binding.CLOTH,
        Right.READ,
        Right.BOTH,
        Right(0),
    ],
    ids=str,
)
def test_a_member_comes_back_as_itself(member):
    """Q2-11"""
    assert sent(member) is member


def test_a_member_travels_by_name_so_that_a_new_one_before_it_changes_nothing():
    assert pack(Color.GREEN, "x") == {"$": "enum", "v": "tests.guests.types:Color.GREEN"}
    assert pack(Right.BOTH, "x")["v"] == "tests.guests.types:Right.READ|WRITE"


LINE = Line("a", 2, {"price": 1.5, "$": {1, 2}})


@pytest.mark.parametrize(
    "value",
    [
        LINE,
        Parcel(lines=(LINE, Line("b"))),
        Parcel(lines=(), color=Color.RED, inner=Parcel(lines=(LINE,))),
    ],
)
def test_a_dataclass_comes_back_equal_and_of_its_type(value):
    """Also a frozen one with slots, and one in another."""
    found = sent(value)
    assert type(found) is type(value)
    assert found == value


def test_a_dataclass_whose_code_changes_its_fields_comes_back_as_it_was():
    found = sent(Price(5))
    assert (found.cents, found.gross, found.seen) == (500, 501, True)


def test_a_field_that_came_later_has_its_default():
    packed = pack(LINE, "x")
    del packed["v"]["more"]
    assert unpack(packed) == Line("a", 2)


def test_a_dataclass_with_more_than_its_fields_is_refused():
    """What its class gives it anew on the other side is no more."""
    line = Line("a")
    line.colour = "blue"  # type: ignore[attr-defined]
    with fake(), pytest.raises(ArgumentError, match=r"args\[0\]\.colour cannot .* no field of the"):
        Echo.perform_async(line)
    case = Case("ab")
    assert (case.shouted, case.size) == ("AB", 2)
    assert sent(case) == case


def test_paths_lead_into_dataclasses():
    with pytest.raises(
        ArgumentError, match=r"^args\[0\]\.inner\.lines\[0\]\.more\['x'\] is a builtins\.complex"
    ):
        Echo.perform_async(Parcel(lines=(), inner=Parcel(lines=(Line("a", 1, {"x": 1j}),))))


def _inside() -> list[Any]:
    class Hidden(enum.Enum):
        A = 1

    @dataclasses.dataclass
    class Local:
        a: int = 1

    return [Hidden.A, Local()]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (_inside()[0], "could not find: .*COGWORKER_ARGUMENT_MODULES"),
        (_inside()[1], "could not find"),
        (InitOnly("a", "b"), "takes 'secret', which is none of its fields"),
        (Beneath("a"), "cannot travel"),
    ],
)
def test_what_no_worker_could_make_again_is_refused_at_the_call(value, why):
    with pytest.raises(ArgumentError, match=rf"^args\[0\]\[0\] .*{why}"):
        Echo.perform_async([value])


@pytest.fixture
def stranger(monkeypatch):
    """A loaded module that is in no app and has no job."""
    module = ModuleType("cw_stranger.kinds")
    Kind = enum.Enum("Kind", ["ONE"], module=module.__name__)
    module.Kind = Kind  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return Kind


def test_other_modules_are_named_by_a_setting(stranger, settings):
    with pytest.raises(ArgumentError, match="could not find"):
        Echo.perform_async(stranger.ONE)
    settings.COGWORKER_ARGUMENT_MODULES = ["cw_stranger"]
    packed = pack(stranger.ONE, "x")
    assert unpack(packed) is stranger.ONE
    settings.COGWORKER_ARGUMENT_MODULES = ["cw_strange"]
    with pytest.raises(UnknownFormat, match="not allowed"):
        unpack(packed)


@pytest.mark.parametrize(
    "path",
    [
        "os:system",
        "subprocess:Popen.x",
        "antigravity:x.A",
        "tests.guests.types.Color:RED",
        "tests.guests.types:Nobody.A",
        "tests.guests.types:Color.BLUE",
        "tests.guests.types:Line.A",
        "tests.guests.nowhere:Color.RED",
        "tests.guests.types:enum.Enum.A",
        "tests.guests.types:Right.READ|NONE",
        "",
        ".",
        ":",
        3,
        None,
    ],
)
def test_a_path_that_leads_nowhere_or_out_of_the_project_imports_nothing_and_is_not_known(path):
    loaded = set(sys.modules)
    for packed in (
        {"$": "enum", "v": path},
        {"$": "dataclass", "of": path, "v": {}},
        {"$": "model", "of": path, "v": 1},
    ):
        with pytest.raises(UnknownFormat):
            check_tags({"args": [[packed]], "jid": "x"})
    assert "antigravity" not in sys.modules
    assert {each for each in set(sys.modules) - loaded if "guests" not in each} == set()


def test_a_rename_says_what_is_missing_and_what_is_there():
    with pytest.raises(UnknownFormat, match="has no member 'BLUE'. Known: RED, GREEN, CRIMSON"):
        unpack({"$": "enum", "v": "tests.guests.types:Color.BLUE"})
    with pytest.raises(UnknownFormat, match="has no field 'weight'. Fields: sku, count, more"):
        unpack({"$": "dataclass", "of": "tests.guests.types:Line", "v": {"sku": "a", "weight": 1}})
    with pytest.raises(UnknownFormat, match="needs a field 'sku'"):
        unpack({"$": "dataclass", "of": "tests.guests.types:Line", "v": {}})
    with pytest.raises(UnknownFormat, match="'guests.Nobody', a model that is not known"):
        check_tags({"args": [{"$": "model", "of": "guests.Nobody", "v": 1}]})
    with pytest.raises(UnknownFormat, match="DATABASES has no 'moon'"):
        check_tags({"args": [{"$": "model", "of": "guests.Book", "v": 1, "db": "moon"}]})


# -- model instances

pytestmark = pytest.mark.django_db(databases=["default", "other"])


def run(*args: Any, **kwargs: Any) -> Any:
    with fake():
        Echo.perform_async(*args, **kwargs)
        return Echo.perform_one()


def test_an_instance_comes_back_as_the_row_is_when_the_job_runs():
    book = Book.objects.create(title="old")
    with fake():
        Echo.perform_async(book)
        (payload,) = Echo.jobs
        Book.objects.update(title="new")
        ((found,), _) = Echo.perform_one()
    assert payload["args"] == [{"$": "model", "of": "guests.Book", "v": book.pk}]
    assert (type(found), found, found.title) == (Book, book, "new")


def test_instances_of_every_kind_come_back():
    """Proxies, inheritance, UUIDs, two columns, deferred fields, rows that the default manager hides."""
    novel = Novel.objects.create(title="n")
    hidden = Book.objects.create(title="h", hidden=True)
    seat = Seat.objects.create(row="b", number=3)
    atlas = Atlas.objects.create(title="t")
    ticket = Ticket.objects.create()
    (part,) = Book.objects.only("pk").filter(pk=novel.pk)
    other = Group(pk="77", name="text as key")
    other.save()
    other.pk = "77"
    wanted = [novel, hidden, seat, atlas, ticket, part, other]
    (args, kwargs) = run(*wanted, seats=(seat,))
    assert list(args) == [*wanted[:-1], Group.objects.get(pk=77)]
    assert [type(each) for each in args] == [Novel, Book, Seat, Atlas, Ticket, Book, Group]
    assert kwargs == {"seats": (seat,)}
    assert args[5].title == "n"


def test_the_database_of_an_instance_travels():
    first = Group.objects.using("other").create(name="over there")
    Group.objects.create(pk=first.pk, name="here")
    ((found,), _) = run(first)
    assert (found.name, found._state.db) == ("over there", "other")


def test_the_rows_of_a_model_are_loaded_in_one_query(django_assert_num_queries):
    books = [Book.objects.create(title=str(each)) for each in range(5)]
    seats = [Seat.objects.create(row="a", number=each) for each in range(3)]
    with fake():
        Echo.perform_async(*books, more=[{"seats": set(seats)}, books[0]])
        with django_assert_num_queries(2):
            args, kwargs = Echo.perform_one()
    assert list(args) == books
    assert kwargs["more"] == [{"seats": set(seats)}, books[0]]
    assert kwargs["more"][1] is args[0]


def test_a_job_without_rows_asks_no_database(django_assert_num_queries):
    with django_assert_num_queries(0):
        run(1, LINE, Color.RED, {"a": [(1,)]})


@pytest.mark.parametrize(
    "make",
    [
        lambda: Book(title="x"),
        lambda: Book(pk=5),
        lambda: Ticket(),
        lambda: Seat(row="a"),
        lambda: deleted(),
    ],
    ids=["new", "key given", "uuid", "half a key", "deleted"],
)
def test_what_is_not_saved_is_refused_at_the_call_with_its_path(make):
    with pytest.raises(
        ArgumentError, match=r"^kwargs\['x'\]\[0\] is a guests\.\w+ that is not saved"
    ):
        Echo.perform_async(x=[make()])


def deleted() -> Book:
    book = Book.objects.create(title="x")
    book.delete()
    return book


@pytest.mark.parametrize("mode", [fake, inline])
def test_a_row_that_is_gone_is_named_with_its_path(mode):
    book, seat = Book.objects.create(title="x"), Seat.objects.create(row="a", number=1)
    Book.objects.filter(pk=book.pk).delete()

    def enqueue_and_run() -> None:
        Echo.perform_async(seat, Line("a", 1, {"b": book}))
        Echo.perform_one()

    where = rf"^args\[1\]\.more\['b'\] is guests\.Book\({book.pk}\)"
    with mode(), pytest.raises(MissingRow, match=where) as caught:
        enqueue_and_run()
    assert isinstance(caught.value, LookupError)


@pytest.mark.parametrize("wrong", ["drop", None, True])
def test_the_option_takes_three_words(wrong):
    with pytest.raises(InvalidOption, match="'fail', 'discard' or 'retry'"):
        Echo.set(missing_row=wrong)


# -- those who look at arguments


def test_who_looks_gets_a_reference_without_a_query(django_assert_num_queries):
    book = Book.objects.create(title="x")
    with fake():
        Echo.perform_async(book, by=Line("a", 1, {"b": book}))
        raw = json.dumps(Echo.jobs[0]).encode()
    with django_assert_num_queries(0):
        reference = unpack(json.loads(raw)["args"][0])
        assert reference == ModelReference("guests.Book", book.pk)
        assert reference == book
        assert book == reference
        assert {reference: 1}[book] == 1
        assert reference != Book(pk=book.pk + 1)
        assert reference != Book()
        assert reference != 5
    assert reference.load().title == "x"
    with pytest.raises(MissingRow):
        ModelReference("guests.Book", 0).load()
    assert run(reference)[0] == (book,)


def test_assertions_compare_instances():
    book, second = Book.objects.create(title="x"), Book.objects.create(title="y")
    with fake():
        Echo.perform_async(book, Color.RED, line=Line("a"))
        assert_enqueued(Echo, args=(book, Color.RED), kwargs={"line": Line("a")})
        assert_not_enqueued(Echo, args=(second, Color.RED))


def test_the_key_of_a_unique_job_knows_them():
    book = Book.objects.create(title="x")
    Book.objects.update(title="y")

    def key(*args: Any, on: Any = None) -> str:
        return key_of(normalise({"class": Echo, "args": args}), on, "until_executed")

    def by_key(found: Any) -> Any:
        return found.pk

    assert key(book, Line("a", 1, {"b": {1, 2, 3}})) == key(book, Line("a", 1, {"b": {3, 2, 1}}))
    assert key(Color.RED) == key(Color.CRIMSON) != key(Color.GREEN)
    assert key(Line("a")) != key(Parcel(lines=()))
    assert key(book, on=by_key) == key(Book.objects.get(), on=by_key)


def test_bulk_and_the_low_level_client_take_them_too():
    from django_cogworker.client import push

    book = Book.objects.create(title="x")
    with fake() as transport:
        Echo.perform_bulk([(book,), {"x": Color.RED}])
        push({"class": Echo, "args": [LINE]})
        assert transport.drain() == 3


class Masked(Job, sensitive=["sku"]):
    def perform(self, line: Line) -> None: ...


def test_they_are_shown_as_code_would_write_them_and_masked_inside():
    book = Ticket.objects.create()
    args = [pack(each, "x") for each in (Color.RED, Right.BOTH, Parcel(lines=(Line("a"),)), book)]
    assert arguments_text(args) == (
        'Color.RED, Right.READ|WRITE, Parcel(lines=(Line(sku="a", count=1, more={})), color=null, inner=null), '
        f"guests.Ticket({book.pk.hex})"
    )
    assert (
        arguments_text([{"$": "model", "of": "a.B", "v": 1, "db": "other"}]) == "a.B(1, db=other)"
    )
    long = pack(Line("a" * 60, 1, {"b": "b" * 60}), "x")
    assert arguments_lines([long]).startswith('Line(\n  sku="aaa')
    with fake():
        Masked.perform_async(Line("a", 7))
        (payload,) = Masked.jobs
    assert arguments_text(*visible_arguments(payload)) == 'Line(sku="***", count=7, more={})'


@pytest.mark.parametrize("value", [None, 3, "x", [], {}, {"$": 1}])
@pytest.mark.parametrize("tag", ["enum", "dataclass", "model"])
def test_odd_ones_of_other_hands_can_be_shown(tag, value):
    for packed in ({"$": tag, "v": value}, {"$": tag, "of": value, "v": value, "db": value}):
        assert arguments_text([packed])
        assert arguments_lines([packed])
        assert visible_arguments({"class": "x", "args": [packed]})


def test_users_are_references_too():
    user = User.objects.create(username="ann")
    assert run({"who": user}) == (({"who": user},), {})
