import time


def retry(action, attempts=3, delay=1.0, sleep=time.sleep):
    """Calls action until it succeeds, at most `attempts` times."""
    for _ in range(attempts):
        try:
            return action()
        except Exception:
            sleep(delay)
    return None
