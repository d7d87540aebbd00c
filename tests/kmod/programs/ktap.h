/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_KTAP_H
#define ZC_TESTS_KTAP_H

/*
 * Tests that report in KTAP, each in a process of its own: one that crashes,
 * hangs or leaves its memory in a mess fails alone.
 *
 *   TEST(refuses_hugetlb, "hugetlbfs memory is refused")
 *   {
 *       CHECK(errno == EMEDIUMTYPE, "errno %d", errno);
 *   }
 */

#include <stdbool.h>
#include <stdint.h>

/** What a test is for; --fixtures-only runs those that need no /dev/zc. */
enum ktap_kind {
    KTAP_DEVICE,
    KTAP_FIXTURE,
};

struct ktap_test {
    const char *id;    /* for --only */
    const char *claim; /* what "ok" says */
    void (*run)(void);
    enum ktap_kind kind;
    struct ktap_test *next;
};

void ktap_register(struct ktap_test *test);

#define KTAP_TEST(name, says, of_kind)                                                             \
    static void name(void);                                                                        \
    static struct ktap_test name##_test = {                                                        \
        .id = #name, .claim = says, .run = name, .kind = of_kind};                                 \
    __attribute__((constructor)) static void name##_register(void)                                 \
    {                                                                                              \
        ktap_register(&name##_test);                                                               \
    }                                                                                              \
    static void name(void)

#define TEST(name, says) KTAP_TEST(name, says, KTAP_DEVICE)
#define FIXTURE_TEST(name, says) KTAP_TEST(name, says, KTAP_FIXTURE)

/** Ends the test, also from a child or a thread of it. @condition: what was not so, or NULL. */
_Noreturn void ktap_fail(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Ends the test: this kernel or guest cannot have what it needs. */
_Noreturn void ktap_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** A line under the result, whatever that is. */
void ktap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define FAIL(...) ktap_fail(__FILE__, __LINE__, NULL, __VA_ARGS__)
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ktap_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                \
    } while (0)
/** For what must not fail in any guest: the set-up of a test. */
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ktap_fail(__FILE__, __LINE__, #condition, "set-up: errno %d", errno);                  \
    } while (0)

/**
 * ktap_child - run a part of the test in a child process
 *
 * The child may use CHECK and the like; its failure is the test's. With
 * ktap_wait() it has ended well, or the test ends here.
 */
int ktap_child(void (*run)(void *), void *arg);
void ktap_wait(int pid);

/**
 * ktap_run - one test in a process of its own, reported as number @number
 * @seconds: how long it may take
 *
 * Return: 0 passed, 1 failed, 4 skipped.
 */
int ktap_run(const struct ktap_test *test, int number, int seconds);

/**
 * ktap_main - run the tests that were registered, in the order of the sources
 *
 *   --list            their ids and claims
 *   --only TEXT       those whose id or claim contains TEXT
 *   --fixtures-only   those that need no /dev/zc
 *   --times           how long each took; else only those of 10 s and more
 *   --timeout SECONDS for each (300)
 *
 * Return: exit code: 0, 1 if one failed, 2 for wrong usage.
 */
int ktap_main(int argc, char **argv, void (*set_up)(bool fixtures_only));

#endif
