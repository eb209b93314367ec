"""The shop's sample data: products, photos and a supplier's price list, made on the spot."""

from __future__ import annotations

import csv
import random
from decimal import Decimal
from pathlib import Path

from django.conf import settings
from PIL import Image, ImageDraw

from catalog.models import Product

NAMES = [
    "Tea kettle",
    "Desk lamp",
    "Wool blanket",
    "Chess board",
    "Bread knife",
    "Garden chair",
    "Bicycle bell",
    "Picture frame",
]


def make_products() -> list[Product]:
    """Products with photos; those that are there already stay as they are."""
    chance = random.Random(1)
    products = []
    for number, name in enumerate(NAMES, 1):
        product, _ = Product.objects.get_or_create(
            sku=f"SHOP-{number:03}",
            defaults={
                "name": name,
                "price": Decimal(chance.randint(500, 9900)) / 100,
                "stock": chance.randint(1, 50),
                "photo": f"photos/{number:03}.{'png' if number % 2 else 'jpg'}",
            },
        )
        make_photo(Path(product.photo.path), product.name, number)
        products.append(product)
    return products


def make_photo(path: Path, title: str, number: int) -> None:
    """A real image file of camera size: a colour gradient with shapes and the product's name."""
    if path.exists():
        return
    width, height = (1600, 1200) if number % 3 else (1200, 1600)
    gradient = Image.linear_gradient("L").resize((width, height))
    side = Image.linear_gradient("L").rotate(90).resize((width, height))
    base = Image.new("L", (width, height), number * 28 % 256)
    photo = Image.merge("RGB", (gradient, base, side))
    draw = ImageDraw.Draw(photo)
    for step in range(12):
        x = (number * 131 + step * 97) % width
        y = (number * 61 + step * 173) % height
        draw.ellipse((x, y, x + 150, y + 150), outline="white", width=6)
    draw.text((40, 40), title, fill="white", font_size=80)
    path.parent.mkdir(parents=True, exist_ok=True)
    photo.save(path)


def make_price_list(name: str, rows: int) -> Path:
    """A supplier's CSV file with `rows` rows, a few of which are wrong, as they are in life."""
    chance = random.Random(2)
    path: Path = settings.VAR / "imports" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sku", "name", "price", "stock"])
        for number in range(1, rows + 1):
            price = f"{chance.randint(100, 20000) / 100:.2f}" if number % 500 else "on request"
            writer.writerow([f"SUP-{number:05}", f"Part {number}", price, chance.randint(0, 99)])
    return path
