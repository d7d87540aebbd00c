/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_SPAWNED_H_INCLUDED
#define ZC_SPAWNED_H_INCLUDED

/* Below zc-hold, what a rank spawns shall be below zc-hold, too: the launcher would start it without, and
 * it could not move, nor its parents (docs/holder.md). So zc-hold tells the rank in ZC_HOLD_SPAWNED how itself
 * was called, a word in each line: its name, and its options. They come before each command that is spawned.
 *
 * This file makes the words. It needs nothing of MPICH. Any thread may call the functions. */

#include <stdbool.h>
#include <string.h>

typedef struct {
    const char *holder;         /* ZC_HOLD_SPAWNED */
    const char *folders;        /* where the command is to be looked for, or NULL */
    const char *command;
    char *const *arguments;     /* or NULL: none */
} MPIDI_ZC_spawned_t;

/* An end of the holder's options is needed in front of it. */
static inline bool MPIDI_ZC_spawned_is_like_option(const char *command)
{
    return command[0] == '-';
}

/* Returns how many words there are behind the holder's name. */
static inline size_t MPIDI_ZC_spawned_number(const MPIDI_ZC_spawned_t * spawned)
{
    size_t number = (spawned->folders ? 3 : 1) + MPIDI_ZC_spawned_is_like_option(spawned->command);

    for (const char *at = spawned->holder; (at = strchr(at, '\n')) != NULL; at++) {
        number++;
    }
    for (size_t i = 0; spawned->arguments && spawned->arguments[i]; i++) {
        number++;
    }
    return number;
}

/* Returns how many bytes the words need. */
static inline size_t MPIDI_ZC_spawned_room(const MPIDI_ZC_spawned_t * spawned)
{
    return (MPIDI_ZC_spawned_number(spawned) + 1) * sizeof(char *) + strlen(spawned->holder) + 1;
}

/* Makes the words in @room, which is for pointers: returns the arguments, NULL behind the last, and in
 * *@command the holder's name. They are there as long as @room and what @spawned points to. */
static inline char **MPIDI_ZC_spawned_words(const MPIDI_ZC_spawned_t * spawned, void *room,
                                            char **command)
{
    char **words = (char **) room;
    char *text = (char *) (words + MPIDI_ZC_spawned_number(spawned) + 1);
    size_t number = 0;

    strcpy(text, spawned->holder);
    *command = text;
    while ((text = strchr(text, '\n')) != NULL) {
        *text++ = '\0';
        words[number++] = text;
    }
    if (spawned->folders) {
        words[number++] = (char *) "--path";
        words[number++] = (char *) spawned->folders;
    }
    if (MPIDI_ZC_spawned_is_like_option(spawned->command)) {
        words[number++] = (char *) "--";
    }
    words[number++] = (char *) spawned->command;
    for (size_t i = 0; spawned->arguments && spawned->arguments[i]; i++) {
        words[number++] = spawned->arguments[i];
    }
    words[number] = NULL;
    return words;
}

static inline const char *MPIDI_ZC_spawned_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Does the program itself spawn by a holder, zc-hold or what @holder (ZC_HOLD_SPAWNED) calls so? */
static inline bool MPIDI_ZC_spawned_is_held(const char *holder, const char *command)
{
    const char *const name = MPIDI_ZC_spawned_name(command);
    const size_t length = strcspn(holder, "\n");
    size_t begin = length;

    while (begin > 0 && holder[begin - 1] != '/') {
        begin--;
    }
    return strcmp(name, "zc-hold") == 0 ||
        (strlen(name) == length - begin && memcmp(name, holder + begin, length - begin) == 0);
}

/* Has what this process spawns started so. It is called in MPI_Init. */
void MPIDI_ZC_spawned_init(void);

#endif /* ZC_SPAWNED_H_INCLUDED */
