#ifndef PARSE_H
#define PARSE_H
int parse_port(const char *text);
#endif
