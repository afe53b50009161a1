#include "parse.h"

#include <stdlib.h>

int parse_port(const char *text)
{
    return atoi(text);
}
