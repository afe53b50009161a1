#include "list.h"
#include <assert.h>
#include <stddef.h>

int main(void)
{
    struct node *head = NULL;
    head = list_remove(head, 1);
    assert(head == NULL);
    for (int i = 1; i <= 3; i++)
        head = list_push(head, i);
    head = list_remove(head, 3);
    assert(head != NULL && head->value == 2 && list_length(head) == 2);
    head = list_remove(head, 1);
    assert(list_length(head) == 1);
    head = list_remove(head, 9);
    head = list_remove(head, 2);
    assert(head == NULL);
    return 0;
}
