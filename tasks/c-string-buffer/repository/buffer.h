#ifndef BUFFER_H
#define BUFFER_H
#include <stddef.h>

struct buffer {
    char *data; /* always terminated by NUL */
    size_t length;
    size_t capacity;
};

void buffer_init(struct buffer *buffer);
int buffer_append(struct buffer *buffer, const char *text);
void buffer_free(struct buffer *buffer);
#endif
