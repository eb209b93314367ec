from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Dead",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "dead job",
                "verbose_name_plural": "Dead",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Error",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "group of errors",
                "verbose_name_plural": "Errors",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="History",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "run",
                "verbose_name_plural": "History",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "Jobs",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="JobClass",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "job class",
                "verbose_name_plural": "Job classes",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Overview",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "overview",
                "verbose_name_plural": "Overview",
                "permissions": (
                    ("view_jobs", "Can look at background jobs"),
                    ("manage_jobs", "Can do everything with background jobs"),
                    ("pause_queues", "Can pause and resume queues"),
                    ("clear_queues", "Can delete all jobs of a queue"),
                    ("steer_periodic", "Can run, disable and enable periodic entries"),
                    ("steer_workers", "Can quiet, resume and stop workers"),
                    ("retry_jobs", "Can retry jobs and run them now"),
                    ("move_jobs", "Can reschedule jobs and move them to another queue"),
                    ("delete_jobs", "Can delete and cancel jobs"),
                ),
                "abstract": False,
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Periodic",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "periodic entry",
                "verbose_name_plural": "Periodic",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "Queues",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Retry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "retrying job",
                "verbose_name_plural": "Retries",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Scheduled",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "scheduled job",
                "verbose_name_plural": "Scheduled",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "Workers",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
            },
        ),
    ]
