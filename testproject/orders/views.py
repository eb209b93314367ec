"""The shop's one page: the orders, and what the jobs did with them."""

from __future__ import annotations

import os

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from catalog.models import Product, Thumbnail
from orders.checkout import place_order as place
from orders.models import Order
from runs.models import JobRun
from runs.summary import by_class


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """The last orders, the last jobs, and a table of what ran."""
    return render(
        request,
        "home.html",
        {
            "orders": Order.objects.select_related("product")[:15],
            "thumbnails": Thumbnail.objects.select_related("product").order_by("size", "pk")[:8],
            "products": Product.objects.count(),
            "summary": by_class(JobRun.objects.all()),
            "runs": JobRun.objects.all()[:15],
        },
    )


@require_GET
def instance(request: HttpRequest) -> HttpResponse:
    """Which start of the demo this server belongs to; `run.py demo` asks."""
    return HttpResponse(os.environ.get("SHOP_INSTANCE", ""))


@require_POST
def place_order(request: HttpRequest) -> HttpResponse:
    """Buy one piece of whatever there is most of."""
    product = Product.objects.filter(stock__gt=0).exclude(photo="").order_by("-stock").first()
    if product is None:
        messages.error(request, "Everything is sold out.")
    else:
        order = place("you@example.com", product)
        messages.success(request, f"{order} is placed; its jobs run now.")
    return redirect("home")
