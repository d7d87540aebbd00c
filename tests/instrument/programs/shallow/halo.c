/* SPDX-License-Identifier: BSD-3-Clause */
/* Ghost-cell lists, the neighbourhood communicator and the exchange of packed buffers.
 * This is part of the program "shallow"; run it with "mpiexec -n 4 ./shallow". */
#include "solver.h"

#include <stdlib.h>

static int *offsets_of(const int *count, int n)
{
    int *offset = SW_NEW(int, n + 1);
    for (int i = 0; i < n; i++)
        offset[i + 1] = offset[i] + count[i];
    return offset;
}

/* The ghost cells are grouped by owner, and adjacency by faces is a symmetric relation. */
static void list_neighbours(struct halo *h, const struct mesh *m)
{
    h->rank = SW_NEW(int, m->n_ghost);
    h->n_send = SW_NEW(int, m->n_ghost);
    h->n_recv = SW_NEW(int, m->n_ghost);
    for (int i = 0; i < m->n_ghost; i++) {
        if (i == 0 || m->ghost_owner[i] != m->ghost_owner[i - 1])
            h->rank[h->n_neighbours++] = m->ghost_owner[i];
        h->n_recv[h->n_neighbours - 1]++;
    }
}

/* Every rank tells its neighbours the global numbers of the cells that it needs from them. */
static void request_cells(struct halo *h, const struct mesh *m)
{
    const int *wanted = m->gid + m->n_owned;
    int n = h->n_neighbours;
    int *recv_offset = offsets_of(h->n_recv, n), *send_offset, *asked;
    SW_MPI(MPI_Neighbor_alltoall(h->n_recv, 1, MPI_INT, h->n_send, 1, MPI_INT, h->graph));
    send_offset = offsets_of(h->n_send, n);
    asked = SW_NEW(int, send_offset[n]);
    SW_MPI(MPI_Neighbor_alltoallv(wanted, h->n_recv, recv_offset, MPI_INT, asked, h->n_send,
                                  send_offset, MPI_INT, h->graph));
    h->send_index = SW_NEW(int *, n);
    h->recv_index = SW_NEW(int *, n);
    for (int i = 0; i < n; i++) {
        h->send_index[i] = SW_NEW(int, h->n_send[i]);
        h->recv_index[i] = SW_NEW(int, h->n_recv[i]);
        for (int j = 0; j < h->n_send[i]; j++) {
            int c = mesh_find_owned(m, asked[send_offset[i] + j]);
            SW_REQUIRE(c >= 0, "rank %d asked for a cell that is not here", h->rank[i]);
            h->send_index[i][j] = c;
        }
        for (int j = 0; j < h->n_recv[i]; j++)
            h->recv_index[i][j] = m->n_owned + recv_offset[i] + j;
    }
    free(recv_offset);
    free(send_offset);
    free(asked);
}

struct halo *halo_create(const struct mesh *m, MPI_Comm comm)
{
    struct halo *h = SW_NEW(struct halo, 1);
    list_neighbours(h, m);
    SW_MPI(MPI_Dist_graph_create_adjacent(comm, h->n_neighbours, h->rank, h->n_recv,
                                          h->n_neighbours, h->rank, h->n_recv, MPI_INFO_NULL, 0,
                                          &h->graph));
    request_cells(h, m);
    return h;
}

struct halo_channel *halo_open(const struct halo *h, int width, int tag)
{
    struct halo_channel *ch = SW_NEW(struct halo_channel, 1);
    int n = h->n_neighbours;
    ch->halo = h;
    ch->width = width;
    ch->send_buffer = SW_NEW(double *, n);
    ch->recv_buffer = SW_NEW(double *, n);
    ch->requests = SW_NEW(MPI_Request, 2 * n);
    ch->statuses = SW_NEW(MPI_Status, 2 * n);
    for (int i = 0; i < n; i++) {
        int n_in = width * h->n_recv[i], n_out = width * h->n_send[i];
        ch->recv_buffer[i] = SW_NEW(double, n_in);
        ch->send_buffer[i] = SW_NEW(double, n_out);
        SW_MPI(MPI_Recv_init(ch->recv_buffer[i], n_in, MPI_DOUBLE, h->rank[i], tag, h->graph,
                             &ch->requests[i]));
        SW_MPI(MPI_Send_init(ch->send_buffer[i], n_out, MPI_DOUBLE, h->rank[i], tag, h->graph,
                             &ch->requests[n + i]));
    }
    return ch;
}

void halo_start(struct halo_channel *ch, const double *field)
{
    const struct halo *h = ch->halo;
    for (int i = 0; i < h->n_neighbours; i++) {
        double *out = ch->send_buffer[i];
        for (int j = 0; j < h->n_send[i]; j++) {
            const double *cell = field + (size_t)ch->width * (size_t)h->send_index[i][j];
            for (int k = 0; k < ch->width; k++)
                *out++ = cell[k];
        }
    }
    SW_MPI(MPI_Startall(2 * h->n_neighbours, ch->requests));
}

void halo_finish(struct halo_channel *ch, double *field)
{
    const struct halo *h = ch->halo;
    SW_MPI(MPI_Waitall(2 * h->n_neighbours, ch->requests, ch->statuses));
    for (int i = 0; i < h->n_neighbours; i++) {
        const double *in = ch->recv_buffer[i];
        for (int j = 0; j < h->n_recv[i]; j++) {
            double *cell = field + (size_t)ch->width * (size_t)h->recv_index[i][j];
            for (int k = 0; k < ch->width; k++)
                cell[k] = *in++;
        }
    }
}

void halo_close(struct halo_channel *ch)
{
    for (int i = 0; i < ch->halo->n_neighbours; i++) {
        free(ch->send_buffer[i]);
        free(ch->recv_buffer[i]);
    }
    for (int i = 0; i < 2 * ch->halo->n_neighbours; i++)
        SW_MPI(MPI_Request_free(&ch->requests[i]));
    free(ch->send_buffer);
    free(ch->recv_buffer);
    free(ch->requests);
    free(ch->statuses);
    free(ch);
}

void halo_destroy(struct halo *h)
{
    for (int i = 0; i < h->n_neighbours; i++) {
        free(h->send_index[i]);
        free(h->recv_index[i]);
    }
    SW_MPI(MPI_Comm_free(&h->graph));
    free(h->send_index);
    free(h->recv_index);
    free(h->rank);
    free(h->n_send);
    free(h->n_recv);
    free(h);
}
