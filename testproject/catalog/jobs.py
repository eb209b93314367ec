"""The catalogue's jobs: thumbnails, price lists, stock."""

from __future__ import annotations

import csv
import itertools
import logging
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path

from django.conf import settings
from django.db.models import Sum
from django.utils import timezone
from PIL import Image

from catalog.models import Import, Product, Thumbnail
from django_cogworker import Job, job

logger = logging.getLogger(__name__)

BATCH = 500


class MakeThumbnail(Job, queue="low", retry=3):
    """Make one small version of a product's photo. May run again: the result is the same."""

    discard_on = (Product.DoesNotExist,)

    def perform(self, product_id: int, size: int) -> None:
        product = Product.objects.get(pk=product_id)
        source = Path(product.photo.path)
        target = settings.MEDIA_ROOT / "thumbnails" / f"{source.stem}-{size}.jpg"
        target.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(source) as photo:
            small = photo.convert("RGB")
            small.thumbnail((size, size))
            small.save(target, quality=85)
        Thumbnail.objects.update_or_create(
            product=product,
            size=size,
            defaults={
                "file": str(target.relative_to(settings.MEDIA_ROOT)),
                "width": small.width,
                "height": small.height,
            },
        )


class ImportPriceList(Job, queue="default", retry=5):
    """Read a supplier's CSV file into the catalogue, in batches.

    Each batch is one statement that inserts or updates by `sku`, so a run that was interrupted can
    begin again from the first row and do no harm.
    """

    def perform(self, import_id: int) -> None:
        record = Import.objects.get(pk=import_id)
        record.state, record.rows, record.rejected = Import.State.RUNNING, 0, 0
        record.save()
        with Path(record.file).open(newline="") as file:
            for rows in _batches(csv.DictReader(file)):
                products = [product for row in rows if (product := _product_from(row))]
                Product.objects.bulk_create(
                    products,
                    update_conflicts=True,
                    unique_fields=["sku"],
                    update_fields=["name", "price", "stock"],
                )
                record.rows += len(products)
                record.rejected += len(rows) - len(products)
                record.save()
        record.state, record.finished_at = Import.State.DONE, timezone.now()
        record.save()


@job(queue="low")
def count_stock() -> int:
    """Add up all pieces in stock. A plain function can be a job too."""
    total = Product.objects.aggregate(total=Sum("stock"))["total"] or 0
    logger.info("There are %d pieces in stock.", total)
    return int(total)


def _batches(rows: Iterable[dict[str, str]]) -> Iterator[list[dict[str, str]]]:
    iterator = iter(rows)
    while batch := list(itertools.islice(iterator, BATCH)):
        yield batch


def _product_from(row: dict[str, str]) -> Product | None:
    """The product of one row; None, with a line in the log, where the row makes no sense."""
    try:
        price, stock = Decimal(row["price"]), int(row["stock"])
    except (InvalidOperation, ValueError) as error:
        logger.info("Row %s is left out: %r", row["sku"], error)
        return None
    return Product(sku=row["sku"], name=row["name"], price=price, stock=stock)
