/* A stand-in for netsh.exe, net.exe and findstr.exe, under whose names it is copied: Wine's own netsh does nothing, its net
 * knows no sessions and its findstr finds nothing. It shows what a batch file would have had Windows do, and not that
 * Windows does it. Not part of the product: only tests run it.
 *
 * All files are in the current folder. Each call adds its arguments to log.txt, one in brackets after the other; of
 * `netsh -f FILE` the lines of the file, too. `netsh interface tcp dump` prints dump.txt, and `show global` global.txt. A
 * call with an argument that is a line of refused.txt fails. */
#include <stdio.h>
#include <string.h>

static int refused(int count, char **arguments)
{
    char line[512];
    int found = 0;
    FILE *list = fopen("refused.txt", "r");
    while (list && fgets(line, sizeof line, list)) {
        line[strcspn(line, "\r\n")] = 0;
        for (int i = 1; i < count; i++)
            found |= !strcmp(line, arguments[i]);
    }
    if (list)
        fclose(list);
    return found;
}

/* Copies the lines that begin with `start`; whether there was one. */
static int copy(const char *name, const char *start, FILE *to)
{
    char line[1024];
    int any = 0;
    FILE *from = fopen(name, "r");
    while (from && fgets(line, sizeof line, from)) {
        if (strncmp(line, start, strlen(start)))
            continue;
        any = 1;
        fputs(line, to);
    }
    if (from)
        fclose(from);
    return any;
}

int main(int count, char **arguments)
{
    const char *name = arguments[0];
    for (const char *c = name; *c; c++)
        if (*c == '\\' || *c == '/')
            name = c + 1;
    /* As the scripts use it: findstr /b /c:"TEXT" FILE */
    if (!strncmp(name, "findstr", 7))
        return !copy(arguments[3], arguments[2] + 3, stdout);
    FILE *log = fopen("log.txt", "a");
    if (!log)
        return 9;
    fprintf(log, "%.*s", (int)strcspn(name, "."), name);
    for (int i = 1; i < count; i++)
        fprintf(log, " [%s]", arguments[i]);
    fputs("\n", log);
    if (count > 2 && !strcmp(arguments[1], "-f"))
        copy(arguments[2], "", log);
    fclose(log);
    if (refused(count, arguments))
        return 1;
    if (count > 3 && !strcmp(arguments[3], "dump"))
        copy("dump.txt", "", stdout);
    if (count > 4 && !strcmp(arguments[4], "global") && !strcmp(arguments[3], "show"))
        copy("global.txt", "", stdout);
    return 0;
}
