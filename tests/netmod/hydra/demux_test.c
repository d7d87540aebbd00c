/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hydra's loop of events: every callback runs for its own descriptor, if that has something to say
 * and has not been deregistered, whichever others a callback before it has deregistered.
 */
#include "demux.h"

enum { NR = 6 };

static int reads[NR], writes[NR]; /* of pipes */
static int nr_called[NR];
static int to_go[NR]; /* by pipe: the one that its callback deregisters, or -1 */
static int nr_wrong;

static HYD_status callback(int fd, HYD_event_t events, void *userp)
{
    const int pipe = (int)(long)userp;
    char byte;

    nr_called[pipe]++;
    if (fd != reads[pipe] || !(events & HYD_POLLIN) || read(fd, &byte, 1) != 1 || byte != pipe) {
        printf("the callback of pipe %d (descriptor %d) was called for descriptor %d\n", pipe,
               reads[pipe], fd);
        nr_wrong++;
    }
    if (to_go[pipe] >= 0)
        HYDT_dmx_deregister_fd(reads[to_go[pipe]]);
    return HYD_SUCCESS;
}

/* Said by NR letters: r has something to read, - has not; of those, GOER deregisters GONE. */
static void round_of(const char *says, int goer, int gone)
{
    for (int i = 0; i < NR; i++) {
        int both[2];
        const char byte = (char)i;
        assert(pipe(both) == 0);
        reads[i] = both[0];
        writes[i] = both[1];
        nr_called[i] = 0;
        to_go[i] = i == goer ? gone : -1;
        if (says[i] == 'r')
            assert(write(writes[i], &byte, 1) == 1);
        HYDT_dmx_register_fd(1, &reads[i], HYD_POLLIN, (void *)(long)i, callback);
    }
    assert(HYDT_dmx_wait_for_event(0) == HYD_SUCCESS);
    for (int i = 0; i < NR; i++) {
        const int expected = says[i] == 'r' && !(i == gone && goer < gone);
        if (nr_called[i] != expected) {
            printf("%s, %d deregisters %d: the callback of pipe %d was called %d times\n", says,
                   goer, gone, i, nr_called[i]);
            nr_wrong++;
        }
        if (i != gone)
            HYDT_dmx_deregister_fd(reads[i]);
        close(reads[i]);
        close(writes[i]);
    }
}

int main(void)
{
    char *demux = NULL;
    assert(HYDT_dmx_init(&demux) == HYD_SUCCESS);
    signal(SIGALRM, SIG_DFL);
    alarm(60);
    round_of("rrrrrr", 0, 3);
    round_of("r--r--", 0, 3);
    round_of("r-r-r-", 0, 1);
    round_of("r--r-r", 0, 2);
    round_of("-r---r", 1, 5);
    round_of("rrrrrr", 4, 2);
    round_of("rrr---", 1, 1);
    free(demux);
    HYDT_dmx_finalize();
    printf(nr_wrong ? "%d wrong\n" : "all right\n", nr_wrong);
    return nr_wrong > 0;
}
