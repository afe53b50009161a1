#include "buffer.h"

#include <stdlib.h>
#include <string.h>

void buffer_init(struct buffer *buffer)
{
    buffer->data = NULL;
    buffer->length = 0;
    buffer->capacity = 0;
}

int buffer_append(struct buffer *buffer, const char *text)
{
    size_t length = strlen(text);
    if (buffer->length + length > buffer->capacity) {
        size_t capacity = buffer->length + length;
        char *data = realloc(buffer->data, capacity);
        if (data == NULL)
            return -1;
        buffer->data = data;
        buffer->capacity = capacity;
    }
    strcpy(buffer->data + buffer->length, text);
    buffer->length += length;
    return 0;
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    buffer_init(buffer);
}
