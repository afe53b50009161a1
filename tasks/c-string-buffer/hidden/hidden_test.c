#include "buffer.h"
#include <assert.h>
#include <string.h>

int main(void)
{
    struct buffer buffer;
    buffer_init(&buffer);
    for (int i = 0; i < 1000; i++) {
        assert(buffer_append(&buffer, "abc") == 0);
        assert(buffer.capacity > buffer.length);
        assert(strlen(buffer.data) == buffer.length);
    }
    buffer_free(&buffer);
    assert(buffer_append(&buffer, "") == 0);
    assert(strcmp(buffer.data, "") == 0);
    buffer_free(&buffer);
    return 0;
}
