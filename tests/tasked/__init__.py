"""An app with tasks of `django.tasks`. They write to the test's journal."""
