#include "parse.h"
#include <assert.h>

int main(void)
{
    assert(parse_port("1") == 1);
    assert(parse_port("65535") == 65535);
    assert(parse_port("080") == 80);
    const char *bad[] = {"", "0", "65536", "80x", " 80", "+80", "-1", "99999999999999999999", "0x50"};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        assert(parse_port(bad[i]) == -1);
    return 0;
}
