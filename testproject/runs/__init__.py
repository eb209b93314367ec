"""What ran: a table fed by the signals of django-cogworker, and the commands of the demo."""
