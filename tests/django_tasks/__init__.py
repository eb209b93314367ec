"""The backend for `django.tasks`. (The suite of Django that runs here needs the name `tasks` for itself.)"""
