/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the landing thread does in quiet times, while its process computes. What deliveries cost is
 * measured once. Landing memory that was not used for some time goes back to the system: 64 MiB
 * land in one burst and are received; then the process's memory shrinks by as much.
 */
#include "counter.h"
#include "status.h"

enum { DATA = 2, MESSAGES = 8, PATIENCE_S = 60 };
static const size_t bytes = 8 << 20;

static void receive_all(void)
{
    struct counter landed = counter_open("landed");
    struct counter measured = counter_open("calibrations");
    struct counter memory = counter_open_class("landing_memory", MPI_T_PVAR_CLASS_LEVEL);
    char *buf = check_malloc(bytes);
    memset(buf, 1, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(counter_await(&landed, MESSAGES, PATIENCE_S), "%llu of %d messages landed",
          counter_read(&landed), MESSAGES);
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Recv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_content(buf, bytes, check_seed + (uint64_t)i, "landed message");
    }
    const size_t full_kib = status_kib("VmRSS");
    const unsigned long long most = counter_read(&memory);
    CHECK(most >= MESSAGES * bytes, "only %llu bytes of landing memory", most);
    for (int ms = 0; counter_read(&memory) > 0; ms += 100) {
        CHECK(ms < PATIENCE_S * 1000, "%llu bytes of landing memory, still %llu after %d s", most,
              counter_read(&memory), PATIENCE_S);
        check_sleep_ms(100);
    }
    const size_t shrunk_kib = full_kib - status_kib("VmRSS");
    CHECK(shrunk_kib < full_kib && shrunk_kib >= MESSAGES * bytes / KIB * 3 / 4,
          "of %llu bytes of landing memory only %zu KiB went back", most, shrunk_kib);
    CHECK(counter_read(&measured) == 1, "what deliveries cost was measured %llu times",
          counter_read(&measured));
    counter_close(&memory);
    counter_close(&measured);
    counter_close(&landed);
    free(buf);
}

static void send_all(void)
{
    char *buf = check_malloc(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MESSAGES; i++) {
        pattern_fill(buf, bytes, check_seed + (uint64_t)i);
        MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
    }
    free(buf);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (check_rank == 0)
        receive_all();
    else if (check_rank == 1)
        send_all();
    return check_finish();
}
