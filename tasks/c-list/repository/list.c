#include "list.h"

#include <stdlib.h>

struct node *list_push(struct node *head, int value)
{
    struct node *node = malloc(sizeof *node);
    if (node == NULL)
        abort();
    node->value = value;
    node->next = head;
    return node;
}

struct node *list_remove(struct node *head, int value)
{
    struct node *node = head;
    while (node->next != NULL) {
        if (node->next->value == value) {
            node->next = node->next->next;
            break;
        }
        node = node->next;
    }
    return head;
}

int list_length(const struct node *head)
{
    int length = 0;
    for (; head != NULL; head = head->next)
        length++;
    return length;
}
