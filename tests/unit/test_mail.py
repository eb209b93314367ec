"""Mails by jobs: what the mailbox gets is what the project wrote, and Django's ways to send all lead there."""

from __future__ import annotations

import email.charset
import email.message
import email.policy
from email.headerregistry import Address
from email.mime.image import MIMEImage
from io import StringIO
from typing import Any

import django
import pytest
from django.core import mail
from django.core.mail import EmailMessage, EmailMultiAlternatives, get_connection, send_mail
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.message import EmailAttachment
from django.core.management import call_command
from django.db import transaction
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy, override

from django_cogworker.checks import check_mail
from django_cogworker.exceptions import (
    ArgumentError,
    ConfigurationError,
    InvalidOption,
    PayloadTooLarge,
    PushError,
)
from django_cogworker.mail import EmailBackend, SendEmail
from django_cogworker.mail.letter import packed, unpacked
from django_cogworker.testing import disabled, fake, inline
from tests.guests.mails import Invoice

OURS = "django_cogworker.mail.EmailBackend"
#: From Django 6.1 on the old ways of configuration warn.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]
HAS_MAILERS = django.VERSION >= (6, 1)


@pytest.fixture(autouse=True)
def backend(settings):
    settings.EMAIL_BACKEND = OURS
    mail.outbox = []


def arrived(message: EmailMessage) -> EmailMessage:
    """The message as it comes out of the job."""
    with fake():
        assert message.send() == 1
        assert mail.outbox == []
        assert SendEmail.perform_one() == 1
    (found,) = mail.outbox
    mail.outbox = []
    return found


def text_of(message: EmailMessage) -> bytes:
    """What would be sent, without what differs each time."""
    message.extra_headers = {**message.extra_headers, "Message-ID": "<x>", "Date": "today"}
    built = message.message()
    for number, part in enumerate(each for each in built.walk() if each.is_multipart()):
        part.set_boundary(f"==={number}===") if part.get_content_maintype() == "multipart" else None
    return bytes(built.as_bytes())


def parts() -> list[Any]:
    """All that can be attached."""
    inline_image = MIMEImage(b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "png")
    inline_image.add_header("Content-ID", "<logo>")
    inline_image.add_header("Content-Disposition", "inline", filename="lögo.png")
    fixed = {"Message-ID": "<inner>", "Date": "Mon, 30 Nov 2026 09:00:00 +0000"}
    inner = EmailMessage("inner", "body", "a@x.de", ["b@x.de"], headers=fixed)
    found: list[Any] = [
        ("a.bin", bytes(range(256)), "application/octet-stream"),
        ("ü.txt", "Grüße\n", "text/plain"),
        EmailAttachment("b.csv", b"a,b\n", "text/csv"),
        (None, b"nameless", "application/pdf"),
        ("m.eml", inner, "message/rfc822"),
        inline_image,
    ]
    if django.VERSION >= (6, 0):
        part = email.message.MIMEPart(policy=email.policy.default)
        part.set_content(b"\x00\x01", "image", "gif", cid="<gif>", disposition="inline")
        found.append(part)
    return found


def letter(kind: type[EmailMessage] = EmailMultiAlternatives, **more: Any) -> Any:
    return kind(
        "Grüße aus Ümea",
        "Hällo ☃\n" + "x" * 2000,
        "Ünder <from@example.com>",
        ["Zoë <to@example.com>", "to2@example.com"],
        bcc=["bcc@example.com"],
        cc=["cc@exämple.com"],
        reply_to=["reply@example.com"],
        headers={"X-Tag": "täg", "List-Id": "<a.b>"},
        **more,
    )


def full() -> EmailMultiAlternatives:
    message = letter()
    for each in parts():
        message.attach(*each) if isinstance(each, tuple) else message.attach(each)
    message.attach_alternative("<b>Hällo</b>", "text/html")
    message.attach_alternative("BEGIN:VCALENDAR", "text/calendar")
    return message


def latin() -> EmailMessage:
    message = letter(EmailMessage)
    message.body = "Hällo"
    message.encoding = "iso-8859-1"
    message.content_subtype = "html"
    return message


def with_charset() -> EmailMessage:
    charset = email.charset.Charset("utf-8")
    charset.body_encoding = email.charset.QP
    message = letter(EmailMessage)
    message.encoding = charset
    return message


@pytest.mark.parametrize("make", [full, latin, lambda: EmailMessage(to=["a@b.de"])])
def test_what_is_sent_is_what_was_written(make):
    message = arrived(make())
    assert type(message) is type(make())
    assert message.recipients() == make().recipients()
    assert text_of(message) == text_of(make())


def test_a_charset_of_its_own_survives():
    """Django from 6.0 on takes none."""
    found: Any = unpacked(packed(with_charset())).encoding
    assert vars(found) == vars(with_charset().encoding)


def test_texts_that_are_safe_or_translated_late_are_taken_at_the_call():
    message = EmailMessage(mark_safe("<b>"), gettext_lazy("Monday"), to=[mark_safe("a@b.de")])
    with override("de"):
        found = arrived(message)
    assert (found.subject, found.body, found.to) == ("<b>", "Montag", ["a@b.de"])
    assert {type(each) for each in (found.subject, found.body, *found.to)} == {str}


def test_attributes_for_services_and_classes_of_the_project_survive():
    message = Invoice(7, to=["a@b.de"])
    message.tags = ["invoice"]
    found = arrived(message)
    assert type(found) is Invoice
    assert (found.number, found.tags, found.subject) == (7, ["invoice"], "Invoice 7")
    message.tags = [object()]
    with fake(), pytest.raises(ArgumentError, match=r"'tags'\]\[0\] is a builtins\.object"):
        message.send()


class Local(EmailMessage):
    __qualname__ = "nobody.Local"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Local(to=["a@b.de"]), "The message is a .*could not find"),
        (
            EmailMessage(to=["a@b.de"], attachments=[EmailAttachment("x", 5, "a/b")]),  # type: ignore[arg-type,list-item,unused-ignore]
            "attachment 'x' holds a int",
        ),
    ],
    ids=["class", "attachment"],
)
def test_what_cannot_travel_is_an_error_of_the_call(message, words):
    with fake(), pytest.raises(ArgumentError, match=words):
        message.send()


@pytest.mark.parametrize(
    "wrong",
    [
        {"subject": "a\nb"},
        {"from_email": "a@b.de\r\nBcc: c@d.de"},
        {"to": ["a@b.de\nBcc: c@d.de"]},
        {"headers": {"X-A": "a\nb"}},
        {"headers": {"X\nA": "a"}},
        {"reply_to": ["a\n"]},
    ],
    ids=str,
)
def test_a_header_with_two_lines_is_refused_at_the_call_as_django_does(wrong):
    with fake() as transport:
        with pytest.raises(ValueError, match="two lines"):
            EmailMessage(**{"to": ["a@b.de"], **wrong}).send()
        assert transport.jobs() == []


def test_addresses_as_objects_are_taken():
    ada, bob = Address("Ada Ü", "ada", "x.de"), Address("", "bob", "x.de")
    message = EmailMessage("s", "b", ada, [bob], cc=[ada], reply_to=[bob])  # type: ignore[arg-type,list-item,unused-ignore]
    found = arrived(message)
    assert (found.from_email, found.to, found.cc, found.reply_to) == (
        "Ada Ü <ada@x.de>",
        ["bob@x.de"],
        ["Ada Ü <ada@x.de>"],
        ["bob@x.de"],
    )


# -- pushing


def test_each_message_is_a_job_and_all_are_pushed_at_once():
    messages = [EmailMessage(f"{n}", "x", "a@b.de", ["c@d.de"]) for n in range(3)]
    messages.insert(1, EmailMessage("nobody gets it"))
    with fake():
        assert get_connection().send_messages(messages) == 3
        assert get_connection().send_messages([]) == 0
        assert len(SendEmail.jobs) == 3
        assert SendEmail.drain() == 3
    assert [each.subject for each in mail.outbox] == ["0", "1", "2"]


def test_options_of_the_job_come_from_the_setting(settings):
    settings.COGWORKER_EMAIL_OPTIONS = {"queue": "mail", "retry": 3, "tags": ["mail"]}
    with fake():
        send_mail("a", "b", None, ["c@d.de"])
        (payload,) = SendEmail.jobs
    assert (payload["queue"], payload["retry"], payload["tags"]) == ("mail", 3, ["mail"])


@pytest.mark.django_db
def test_inside_a_transaction_it_waits_for_the_commit(django_capture_on_commit_callbacks):
    with fake() as transport:
        with transaction.atomic():
            assert send_mail("a", "b", None, ["c@d.de"]) == 1
            transaction.set_rollback(True)
        assert transport.jobs() == []
        with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
            assert send_mail("a", "b", None, ["c@d.de"]) == 1
        assert len(transport.jobs()) == 1


def test_one_that_is_too_large_says_so(settings):
    message = EmailMessage("a", "b", to=["c@d.de"])
    message.attach("big.bin", bytes(900_000), "application/octet-stream")
    with fake() as transport:
        with pytest.raises(PayloadTooLarge, match=r"SendEmail has a payload of 12\d\d\d\d\d bytes"):
            message.send()
        assert transport.jobs() == []


def test_fail_silently_keeps_errors_of_the_push_from_the_caller_and_logs_them(settings, caplog):
    with disabled():  # nobody listens there
        with pytest.raises(PushError):
            EmailMessage("a", "b", to=["c@d.de"]).send()
        assert EmailMessage("a", "b", to=["c@d.de"]).send(fail_silently=True) == 0
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "Mails could not be enqueued.")


def test_a_handler_that_mails_errors_does_not_begin_again(settings, caplog):
    """As Django's `AdminEmailHandler` does where it hears our logger."""
    import logging

    class Mails(logging.Handler):
        calls = 0

        def emit(self, record: logging.LogRecord) -> None:
            self.calls += 1
            assert EmailMessage("error", "b", to=["c@d.de"]).send(fail_silently=True) == 0

    handler = Mails()
    logging.getLogger("django_cogworker").addHandler(handler)
    try:
        with disabled():
            EmailMessage("a", "b", to=["c@d.de"]).send(fail_silently=True)
    finally:
        logging.getLogger("django_cogworker").removeHandler(handler)
    assert handler.calls == 1


def test_credentials_do_not_travel():
    with fake(), pytest.raises(ConfigurationError, match="would lie in Redis"):
        send_mail("a", "b", None, ["c@d.de"], auth_user="u", auth_password="p")


# -- the job


def test_a_mail_that_is_tried_again_has_the_same_id_and_one_of_its_own_is_kept():
    with fake():
        send_mail("a", "b", None, ["c@d.de"])
        (payload,) = SendEmail.jobs
        SendEmail.drain()
        EmailMessage("a", "b", to=["c@d.de"], headers={"message-id": "<mine>"}).send()
        SendEmail.drain()
    first, second = mail.outbox
    assert first.extra_headers["Message-ID"].startswith(f"<{payload['jid']}@")
    assert second.extra_headers == {"message-id": "<mine>"}


def test_inline_mails_are_in_the_outbox_at_once():
    with inline():
        assert send_mail("a", "b", None, ["c@d.de"], html_message="<b>") == 1
    (found,) = mail.outbox
    assert isinstance(found, EmailMultiAlternatives)
    assert [tuple(each) for each in found.alternatives] == [("<b>", "text/html")]


def test_under_djangos_test_runner_the_outbox_works_as_ever(settings):
    """The runner puts its own backend in place of ours: no job is made."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    with fake() as transport:
        send_mail("a", "b", None, ["c@d.de"])
        assert transport.jobs() == []
    assert len(mail.outbox) == 1


def test_sendtestemail_works(settings):
    settings.ADMINS = ["admin@example.com"]
    if not HAS_MAILERS:
        settings.ADMINS = [("Admin", "admin@example.com")]
    with fake():
        call_command("sendtestemail", "a@b.de", "--admins", stdout=StringIO())
        assert SendEmail.drain() == 2
    assert [each.to for each in mail.outbox] == [["a@b.de"], ["admin@example.com"]]


# -- settings


def found() -> list[tuple[str, str]]:
    return [(str(each.id), each.msg) for each in check_mail()]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("EMAIL_BACKEND", OURS, "makes a job of each mail again"),
        ("EMAIL_BACKEND", "shop.nowhere.Backend", "'shop.nowhere.Backend': No module named 'shop"),
        ("EMAIL_OPTIONS", {"queu": "mail"}, "the option 'queu', .*Did you mean 'queue'"),
        ("EMAIL_OPTIONS", {"retry": -1}, "retry=-1; allowed is"),
    ],
)
def test_the_check_tells_what_cannot_send(settings, name, value, words):
    import re

    assert found() == []
    setattr(settings, f"COGWORKER_{name}", value)
    ((check_id, text),) = found()
    assert check_id == "django_cogworker.E107"
    assert re.search(words, text)


def test_wrong_options_are_an_error_of_the_call(settings):
    settings.COGWORKER_EMAIL_OPTIONS = {"retry": -1}
    with fake(), pytest.raises(InvalidOption):
        send_mail("a", "b", None, ["c@d.de"])


@pytest.mark.parametrize("path", [OURS, "shop.nowhere.Backend"])
def test_what_can_never_send_is_an_error_of_the_call(settings, path):
    settings.COGWORKER_EMAIL_BACKEND = path
    with fake() as transport:
        with pytest.raises(ConfigurationError, match="COGWORKER_EMAIL_BACKEND"):
            send_mail("a", "b", None, ["c@d.de"])
        assert transport.jobs() == []


def test_a_mailer_needs_mailers():
    with fake(), pytest.raises(ConfigurationError, match=r"'smtp', which MAILERS does not have"):
        EmailBackend(mailer="smtp")


# -- MAILERS

if HAS_MAILERS:

    def test_mailers_are_named_by_alias_with_options_of_the_job(settings):
        settings.MAILERS = {
            "default": {"BACKEND": OURS, "OPTIONS": {"mailer": "smtp", "job": {"queue": "mail"}}},
            "smtp": {"OPTIONS": {"host": "localhost"}},
        }
        with fake():
            assert EmailMessage("a", "b", to=["c@d.de"]).send(using="default") == 1
            assert send_mail("a", "b", None, ["c@d.de"]) == 1
            assert [each["kwargs"]["mailer"] for each in SendEmail.jobs] == ["smtp", "smtp"]
            assert [each["queue"] for each in SendEmail.jobs] == ["mail", "mail"]
            SendEmail.drain()
        assert len(mail.outbox) == 2

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({}, "needs OPTIONS with 'mailer'"),
            ({"mailer": "stmp"}, "is 'stmp', which MAILERS does not have.*'smtp'"),
            ({"mailer": ["smtp"]}, "which MAILERS does not have"),
            ({"mailer": "default"}, "this entry itself"),
            ({"mailer": "second"}, "'second', which makes a job of each mail again"),
            ({"mailer": "gone"}, "'gone', whose BACKEND cannot be imported"),
            ({"mailer": "smtp", "job": {"queu": "mail"}}, "'job'.*Did you mean 'queue'"),
            ({"mailer": "smtp", "job": {"retry": -1}}, "'job'.*retry=-1"),
            ({"mailer": "smtp", "job": 5}, "'job'. is 5"),
            ({"mailer": "smtp", "host": "x"}, "host"),
        ],
        ids=str,
    )
    def test_an_entry_of_mailers_that_can_never_send(settings, options, words):
        """The check says so, and the call at once, instead of 25 attempts."""
        import re

        settings.MAILERS = {
            "default": {"BACKEND": OURS, "OPTIONS": options},
            "second": {"BACKEND": OURS, "OPTIONS": {"mailer": "smtp"}},
            "gone": {"BACKEND": "shop.nowhere.Backend"},
            "smtp": {"OPTIONS": {"host": "localhost"}},
        }
        ((check_id, text),) = found()
        assert check_id == "django_cogworker.E107"
        assert "MAILERS['default']" in text
        assert re.search(words, text)
        with fake() as transport:
            with pytest.raises(Exception, match=words):
                EmailMessage("a", "b", to=["c@d.de"]).send(using="default")
            assert transport.jobs() == []

    def test_a_circle_of_entries_is_told_of_each(settings):
        settings.MAILERS = {
            "default": {"BACKEND": OURS, "OPTIONS": {"mailer": "other"}},
            "other": {"BACKEND": OURS, "OPTIONS": {"mailer": "default"}},
        }
        assert len(found()) == 2

    def test_an_entry_of_mailers_without_a_mailer_says_what_it_needs(settings):
        settings.MAILERS = {"default": {"BACKEND": OURS}}
        with fake(), pytest.raises(ConfigurationError, match=r"MAILERS\['default'\] needs OPTIONS"):
            send_mail("a", "b", None, ["c@d.de"])


def test_the_backend_is_one_of_djangos():
    assert issubclass(EmailBackend, BaseEmailBackend)
    with EmailBackend() as opened:
        assert isinstance(opened, EmailBackend)
