/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * datatypes [KIB]: derived datatypes on either side or both, early and late, 768 KiB or another
 * multiple of 8 KiB: every element right,
 * every gap untouched. The expectation is made by MPI_Unpack into a second
 * buffer, and whole buffers are compared, gaps included.
 */
#include "check.h"

enum { GO = 1, DATA = 2, TYPES = 6 };
static size_t payload = 768 * 1024;

struct layout {
    const char *name;
    MPI_Datatype type;
    size_t extent_bytes; /* room one element of the type needs, from offset 0 */
};

static void make_layouts(struct layout *layouts)
{
    int blocks[64], places[64];
    for (int i = 0; i < 64; i++) {
        blocks[i] = (int)(payload / 64);
        places[i] = (int)(payload / 64 + 4096 + 64) * ((i * 37) % 64);
    }
    MPI_Type_contiguous((int)payload, MPI_BYTE, &layouts[0].type);
    layouts[0].name = "contiguous";
    MPI_Type_vector((int)(payload / 4096), 4096, 5000, MPI_BYTE, &layouts[1].type);
    layouts[1].name = "vector";
    MPI_Type_indexed(64, blocks, places, MPI_BYTE, &layouts[2].type);
    layouts[2].name = "indexed";
    MPI_Type_create_hvector((int)(payload / 8192), 1024, 12288, MPI_DOUBLE, &layouts[3].type);
    layouts[3].name = "hvector";

    int lengths[3] = {(int)(payload / 4), (int)(payload / 16), (int)(payload / 2)};
    MPI_Aint at[3] = {24, (MPI_Aint)(payload / 4 + 4096), (MPI_Aint)(payload + 8192)};
    MPI_Datatype parts[3] = {MPI_BYTE, MPI_INT, MPI_CHAR};
    MPI_Type_create_struct(3, lengths, at, parts, &layouts[4].type);
    layouts[4].name = "struct";

    /* Two large contiguous halves: both could be rebound, the gap must not be. */
    MPI_Type_create_hvector(2, (int)(payload / 2), (MPI_Aint)(payload / 2 + 100), MPI_BYTE,
                            &layouts[5].type);
    layouts[5].name = "two halves";

    for (int i = 0; i < TYPES; i++) {
        MPI_Aint lower, extent;
        int size;
        MPI_Type_commit(&layouts[i].type);
        MPI_Type_size(layouts[i].type, &size);
        CHECK((size_t)size == payload, "%s holds %d bytes", layouts[i].name, size);
        MPI_Type_get_true_extent(layouts[i].type, &lower, &extent);
        layouts[i].extent_bytes = (size_t)(lower + extent);
    }
}

static void unpack(const struct layout *layout, const void *packed, void *buf)
{
    int position = 0;
    MPI_Unpack(packed, (int)payload, &position, buf, 1, layout->type, MPI_COMM_WORLD);
}

static void receive(const struct layout *layout, int late, const char *packed)
{
    struct guarded g = guarded_make(layout->extent_bytes, 16);
    char *expected = check_malloc(layout->extent_bytes);
    memset(expected, 0xa5, layout->extent_bytes);
    unpack(layout, packed, expected);

    MPI_Request request;
    if (!late)
        MPI_Irecv(g.at, 1, layout->type, 1, DATA, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    if (late) {
        check_sleep_ms(15);
        MPI_Irecv(g.at, 1, layout->type, 1, DATA, MPI_COMM_WORLD, &request);
    }
    MPI_Status status;
    int count;
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, layout->type, &count);
    CHECK(count == 1, "%s: count %d", layout->name, count);
    for (size_t i = 0; i < layout->extent_bytes; i++)
        CHECK(g.at[i] == (unsigned char)expected[i], "%s, %s: byte %zu (gap or element) wrong",
              layout->name, late ? "late" : "early", i);
    guarded_check(&g, layout->name);
    free(expected);
    guarded_free(&g);
}

int main(int argc, char **argv)
{
    struct layout layouts[TYPES];
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc > 1)
        payload = strtoul(argv[1], NULL, 10) * KIB;
    make_layouts(layouts);
    char *packed = check_malloc(payload);
    uint64_t seed = check_seed;
    for (int out = 0; out < TYPES; out++) {
        for (int in = 0; in < TYPES; in++) {
            for (int late = 0; late < 2; late++, seed++) {
                pattern_fill(packed, payload, seed);
                if (check_rank == 0) {
                    receive(&layouts[in], late, packed);
                } else if (check_rank == 1) {
                    char *buf = check_malloc(layouts[out].extent_bytes);
                    unpack(&layouts[out], packed, buf);
                    MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    MPI_Send(buf, 1, layouts[out].type, 0, DATA, MPI_COMM_WORLD);
                    free(buf);
                }
            }
        }
    }
    free(packed);
    for (int i = 0; i < TYPES; i++)
        MPI_Type_free(&layouts[i].type);
    return check_finish();
}
