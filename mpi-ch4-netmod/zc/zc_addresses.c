/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "mpidu_bc.h"
#include "mpidu_init_shm.h"
#include "zc_impl.h"
#include "zc_addresses.h"
#include "zc_address_list.h"
#include "zc_path.h"
#include "zc_processors.h"
#include "zc_upid.h"

static const uint64_t *mask_in(const MPIDI_ZC_entry_t * entry)
{
    return (const uint64_t *) (entry + 1);
}

static const MPIDI_ZC_upid_t *upid_in(const MPIDI_ZC_entry_t * entry)
{
    return (const MPIDI_ZC_upid_t *) (mask_in(entry) + entry->mask_words);
}

static const char *net_address_in(const MPIDI_ZC_entry_t * entry)
{
    return (const char *) upid_in(entry) + entry->upid_length;
}

/* Allocates a table of which all ranks of this host would have the same copy: they share one. The
 * first of them fills it, then all call MPIDU_Init_shm_barrier(). */
static int new_table(size_t size, size_t stride, void *table)
{
    return MPIDU_Init_shm_alloc(size * stride, table);
}

static bool fills_tables(void)
{
    return MPIR_Process.local_rank == 0;
}

/* Keeps the upids of all ranks, for processes of other worlds that connect later. CH4's table has
 * 4 KiB for each rank, of which a upid takes a few hundred bytes, so the rows of the table that is
 * kept are as wide as the longest upid. @table: an entry for each rank. */
static int keep_addresses(const char *table, size_t table_stride)
{
    int mpi_errno = MPI_SUCCESS;
    const size_t size = MPIR_Process.size;
    size_t stride = 0, net_stride = 0;

    for (size_t rank = 0; rank < size; rank++) {
        const MPIDI_ZC_entry_t *entry = (const MPIDI_ZC_entry_t *) (table + rank * table_stride);
        stride = MPL_MAX(stride, MPIDI_ZC_whole_words(entry->upid_length));
        net_stride = MPL_MAX(net_stride,
                             MPIDI_ZC_whole_words(sizeof(MPIDI_ZC_upid_t) + entry->net_length));
        MPIR_ERR_CHKANDJUMP3((int) entry->nr_vcis != MPIDI_global.n_vcis, mpi_errno, MPI_ERR_OTHER,
                             "**zc_vcis", "**zc_vcis %d %d %d", MPIDI_global.n_vcis,
                             (int) entry->nr_vcis, (int) rank);
    }
    mpi_errno = new_table(size, stride, &MPIDI_ZC_global.world);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = new_table(size, net_stride, &MPIDI_ZC_global.nets);
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_ZC_global.world_stride = stride;
    MPIDI_ZC_global.net_stride = net_stride;
    for (size_t rank = 0; rank < size && fills_tables(); rank++) {
        const MPIDI_ZC_entry_t *entry = (const MPIDI_ZC_entry_t *) (table + rank * table_stride);
        char *upid = (char *) MPIDI_ZC_global.world + rank * stride;
        char *net = (char *) MPIDI_ZC_global.nets + rank * net_stride;
        memset(upid, 0, stride);
        memcpy(upid, upid_in(entry), entry->upid_length);
        memset(net, 0, net_stride);
        memcpy(net, upid, sizeof(MPIDI_ZC_upid_t));
        memcpy(net + sizeof(MPIDI_ZC_upid_t), net_address_in(entry), entry->net_length);
    }
    mpi_errno = MPIDU_Init_shm_barrier();
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Takes note of the ranks on this machine that MPICH does not consider to be on this host: they
 * are in other containers, or MPICH has been set to pretend (MPIR_CVAR_NOLOCAL). */
static int note_neighbours(const char *table, size_t table_stride)
{
    int mpi_errno = MPI_SUCCESS;
    const int self = MPIR_Process.rank;

    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        const MPIDI_ZC_entry_t *entry = (const MPIDI_ZC_entry_t *) (table + rank * table_stride);
        if (MPIR_Process.node_map[rank] != MPIR_Process.node_map[self] &&
            MPIDI_ZC_same_machine(upid_in(entry)->host, MPIDI_ZC_upid_of(self)->host)) {
            MPIR_ERR_CHKANDJUMP(!MPIDI_ZC_processors_add(mask_in(entry), entry->mask_words, false),
                                mpi_errno, MPI_ERR_OTHER, "**nomem");
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Opens the window of each VCI for rank @rank, and sets the credit that the rank gives us. */
static void open_windows(int rank, const MPIDI_ZC_entry_t * entry)
{
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_lane_t *lane = v == 0 ? &MPIDI_ZC_AV(&MPIDIU_get_av(0, rank)).lane :
            &MPIDI_ZC_VCI(v).lanes[rank];
        lane->credit = entry->window;
        lane->inbound.window = MPIDI_ZC_global.window;
    }
}

/* Makes the upid of @vci for other worlds, without its id and host: in a port name, which has 256
 * characters for it in hexadecimal, there is no room for the part of the address for shared memory. */
static int make_net(MPIDI_ZC_vci_t * vci)
{
    int mpi_errno = MPI_SUCCESS;
    ucp_worker_attr_t attr = {
        .field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS,
        .address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY,
    };

    ucs_status_t status = ucp_worker_query(vci->worker, &attr);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_query");
    vci->net_length = sizeof(MPIDI_ZC_upid_t) + attr.address_length;
    vci->net = MPL_calloc(1, vci->net_length, MPL_MEM_ADDRESS);
    if (vci->net) {
        memcpy(vci->net->address, attr.address, attr.address_length);
    }
    ucp_worker_release_address(vci->worker, attr.address);
    MPIR_ERR_CHKANDJUMP(!vci->net, mpi_errno, MPI_ERR_OTHER, "**nomem");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_addresses_own_net(MPIDI_ZC_vci_t * vci)
{
    int mpi_errno = MPI_SUCCESS;

    if (likely(vci->net)) {
        goto fn_exit;
    }
    mpi_errno = make_net(vci);
    MPIR_ERR_CHECK(mpi_errno);
    *vci->net = *MPIDI_ZC_upid_self();

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_addresses_exchange(void)
{
    int mpi_errno = MPI_SUCCESS;
    const MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(0);
    void *table = NULL;
    int stride, words;
    const uint64_t *mask = MPIDI_ZC_processors_own(&words);
    const size_t length = sizeof(MPIDI_ZC_upid_t) + vci->address_length;
    MPIDI_ZC_entry_t *entry;
    MPIDI_ZC_upid_t *mine;
    MPIR_CHKLMEM_DECL(1);

    mpi_errno = make_net(&MPIDI_ZC_VCI(0));
    MPIR_ERR_CHECK(mpi_errno);
    const size_t net_length = MPIDI_ZC_VCI(0).net_length - sizeof(MPIDI_ZC_upid_t);
    const size_t total = sizeof(MPIDI_ZC_entry_t) + words * sizeof(*mask) + length + net_length;
    MPIR_CHKLMEM_MALLOC(entry, MPIDI_ZC_entry_t *, total, mpi_errno, "upid", MPL_MEM_ADDRESS);
    *entry = (MPIDI_ZC_entry_t) {
        .upid_length = length,
        .nr_vcis = MPIDI_global.n_vcis,
        .mask_words = words,
        .window = MPIDI_ZC_global.window,
        .net_length = net_length,
    };
    memcpy((uint64_t *) mask_in(entry), mask, words * sizeof(*mask));
    mine = (MPIDI_ZC_upid_t *) upid_in(entry);
    mpi_errno = MPIDI_ZC_upid_draw(&mine->id);
    MPIR_ERR_CHECK(mpi_errno);
    mine->host = MPIDI_ZC_own_host();
    if (MPIR_CVAR_NOLOCAL) {
        mine->host = mine->host >> 32 << 32 | (uint32_t) mine->id;
    }
    memcpy(mine->address, vci->address, vci->address_length);
    MPIDI_ZC_VCI(0).net->id = mine->id;
    MPIDI_ZC_VCI(0).net->host = mine->host;
    memcpy((char *) net_address_in(entry), MPIDI_ZC_VCI(0).net->address, net_length);
    mpi_errno = MPIDU_bc_table_create(MPIR_Process.rank, MPIR_Process.size, MPIR_Process.node_map,
                                      entry, (int) total, FALSE, FALSE, &table, &stride);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = keep_addresses(table, stride);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = note_neighbours(table, stride);
    MPIR_ERR_CHECK(mpi_errno);

    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        MPIDI_ZC_AV(&MPIDIU_get_av(0, rank)) = (MPIDI_ZC_addr_t) {.self = MPIR_Process.rank };
        open_windows(rank, (const MPIDI_ZC_entry_t *) ((char *) table + (size_t) rank * stride));
    }

  fn_exit:
    if (table) {
        MPIDU_bc_table_destroy();
    }
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_addresses_renew(void)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_upid_t *old = MPIDI_ZC_VCI(0).net;
    char *list = NULL;
    size_t length;

    MPIDI_ZC_VCI(0).net = NULL;
    mpi_errno = make_net(&MPIDI_ZC_VCI(0));
    MPIR_ERR_CHECK(mpi_errno);
    *MPIDI_ZC_VCI(0).net = *old;
    for (int v = 1; v < MPIDI_global.n_vcis; v++) {
        MPL_free(MPIDI_ZC_VCI(v).net);
        MPIDI_ZC_VCI(v).net = NULL;     /* MPIDI_ZC_addresses_own_net() makes it */
    }
    list = MPIDI_ZC_address_list_own(&length);
    MPIR_ERR_CHKANDJUMP(!list, mpi_errno, MPI_ERR_OTHER, "**nomem");
    mpi_errno = MPIDI_ZC_path_keep_addresses(MPIR_Process.rank, list, length);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPL_free(list);
    MPL_free(old);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_addresses_exchange_others(void)
{
    int mpi_errno = MPI_SUCCESS;
    const int nr_others = MPIDI_global.n_vcis - 1;
    MPIR_Comm *comm = MPIR_Process.comm_world;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int longest = 0, stride;
    char *all = NULL;

    for (int v = 1; v <= nr_others; v++) {
        longest = MPL_MAX(longest, (int) MPIDI_ZC_VCI(v).address_length);
    }
    mpi_errno = MPIR_Allreduce_allcomm_auto(&longest, &stride, 1, MPI_INT, MPI_MAX, comm,
                                            &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP(errflag, mpi_errno, MPI_ERR_OTHER, "**coll_fail");
    stride = (int) MPIDI_ZC_whole_words(stride);

    const size_t row = (size_t) nr_others * stride;
    MPIDI_ZC_global.lane_stride = stride;
    all = MPL_calloc(MPIR_Process.size, row, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!all, mpi_errno, MPI_ERR_OTHER, "**nomem");
    char *mine = all + MPIR_Process.rank * row;
    for (int v = 1; v <= nr_others; v++) {
        const MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(v);
        memcpy(mine + (v - 1) * (size_t) stride, vci->address, vci->address_length);
    }
    mpi_errno = MPIR_Allgather_allcomm_auto(MPI_IN_PLACE, 0, MPI_BYTE, all, row, MPI_BYTE, comm,
                                            &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP(errflag, mpi_errno, MPI_ERR_OTHER, "**coll_fail");
    mpi_errno = new_table(MPIR_Process.size, row, &MPIDI_ZC_global.lane_addresses);
    MPIR_ERR_CHECK(mpi_errno);
    if (fills_tables()) {
        memcpy(MPIDI_ZC_global.lane_addresses, all, MPIR_Process.size * row);
    }
    mpi_errno = MPIDU_Init_shm_barrier();
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPL_free(all);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
