#ifndef LIST_H
#define LIST_H
struct node {
    int value;
    struct node *next;
};

struct node *list_push(struct node *head, int value);
/* Removes the first node with this value and returns the new head. */
struct node *list_remove(struct node *head, int value);
int list_length(const struct node *head);
#endif
