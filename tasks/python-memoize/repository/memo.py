import functools


def memoize(function):
    cache = {}

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if args not in cache:
            cache[args] = function(*args, **kwargs)
        return cache[args]

    wrapper.cache = cache
    return wrapper
