/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_impl.h"
#include "zc_stream.h"

#if MPICH_DATATYPE_ENGINE == MPICH_DATATYPE_ENGINE_DATALOOP
#include <dataloop.h>
#define HAVE_SEGMENTS 1
#endif

/* A packet of UCP is some KiB long; an engine without a cursor seeks once for each window. */
#define WINDOW_BYTES ((size_t) 256 << 10)

/* This is used instead of a window where there is no memory for one. It holds any basic element. */
#define SPARE_BYTES 256

/* So many bytes of one VCI's messages may be packed as a whole at a time. */
#define WHOLE_BYTES ((size_t) 16 << 20)

/* A packet that overtook another: UCX sends over several networks at once where it has them. */
typedef struct early {
    struct early *next;
    size_t at;
    size_t length;
    char bytes[];
} early_t;

/* Where the user's bytes are. */
typedef enum { ONE_PIECE, PIECES, TYPED } memory_t;

struct MPIDI_ZC_stream {
    MPIDI_ZC_vci_t *vci;
    MPIR_Request *rreq;         /* NULL: sending */
    size_t bytes;               /* of the message */
    size_t room;                /* receiving: so many of them go to user memory */
    size_t at;                  /* receiving: so many have come */
    size_t moved;               /* packed or unpacked */
    early_t *early;             /* receiving: by place */

    memory_t memory;
    char *piece;                /* ONE_PIECE */
    const struct iovec *pieces; /* PIECES: those not yet filled */
    size_t filled;              /* of the first of them */
    void *user;                 /* TYPED, and the next two */
    MPI_Aint count;
    MPI_Datatype datatype;
#ifdef HAVE_SEGMENTS
    MPIR_Segment *segment;      /* TYPED: a cursor */
#endif

    char *window;
    size_t window_bytes;        /* 0: not made yet */
    size_t held;                /* sending: the last packed; receiving: the next to unpack */
    bool is_whole;              /* the window is as wide as the message */
    bool mismatched;            /* user memory takes no more: it has other basic elements */
    char spare[SPARE_BYTES];
};

/* ---- user memory ---- */

/* Packs the next @length bytes of user memory to @buffer; unpack_typed() does the opposite. Basic
 * elements move as a whole or not at all. Both return the bytes that have moved. */
static size_t pack_typed(MPIDI_ZC_stream_t * stream, char *buffer, size_t length)
{
#ifdef HAVE_SEGMENTS
    MPI_Aint last = stream->moved + length;
    MPIR_Segment_pack(stream->segment, stream->moved, &last, buffer);
    const size_t moved = last - stream->moved;
#else
    MPI_Aint moved = 0;
    (void) MPIR_Typerep_pack(stream->user, stream->count, stream->datatype, stream->moved, buffer,
                             length, &moved);
#endif
    stream->moved += moved;
    return moved;
}

static size_t unpack_typed(MPIDI_ZC_stream_t * stream, const char *buffer, size_t length)
{
#ifdef HAVE_SEGMENTS
    MPI_Aint last = stream->moved + length;
    MPIR_Segment_unpack(stream->segment, stream->moved, &last, buffer);
    const size_t moved = last - stream->moved;
#else
    MPI_Aint moved = 0;
    (void) MPIR_Typerep_unpack(buffer, length, stream->user, stream->count, stream->datatype,
                               stream->moved, &moved);
#endif
    stream->moved += moved;
    return moved;
}

static void fill_pieces(MPIDI_ZC_stream_t * stream, const char *data, size_t length)
{
    stream->moved += length;
    while (length > 0) {
        const struct iovec *piece = stream->pieces;
        const size_t more = MPL_MIN(length, piece->iov_len - stream->filled);
        MPIR_Typerep_copy((char *) piece->iov_base + stream->filled, data, more);
        data += more;
        length -= more;
        stream->filled += more;
        if (stream->filled == piece->iov_len) {
            stream->pieces++;
            stream->filled = 0;
        }
    }
}

/* ---- the window ---- */

static void make_window(MPIDI_ZC_stream_t * stream)
{
    stream->window_bytes = MPL_MIN(stream->bytes, WINDOW_BYTES);
    stream->window = MPL_malloc(stream->window_bytes, MPL_MEM_BUFFER);
    if (!stream->window) {
        stream->window = stream->spare;
        stream->window_bytes = SPARE_BYTES;
    }
}

/* Makes the window as long as the message, if that is not too long and there is memory. */
static void try_whole(MPIDI_ZC_stream_t * stream)
{
    MPIDI_ZC_vci_t *vci = stream->vci;

    if (vci->whole_bytes + stream->bytes <= WHOLE_BYTES) {
        stream->window = MPL_malloc(stream->bytes, MPL_MEM_BUFFER);
        if (stream->window) {
            stream->is_whole = true;
            stream->window_bytes = stream->bytes;
            vci->whole_bytes += stream->bytes;
        }
    }
    vci->stats.streamed += !stream->is_whole;
}

/* Unpacks through the window, since a basic element may continue in the next packet. */
static void unpack(MPIDI_ZC_stream_t * stream, const char *data, size_t length)
{
    const size_t end = MPL_MIN(stream->bytes, stream->room);

    if (stream->window_bytes == 0) {
        make_window(stream);
    }
    while (length > 0) {
        const size_t more = MPL_MIN(length, stream->window_bytes - stream->held);
        memcpy(stream->window + stream->held, data, more);
        data += more;
        length -= more;
        stream->held += more;
        if (stream->held == stream->window_bytes || stream->moved + stream->held == end) {
            const size_t moved = unpack_typed(stream, stream->window, stream->held);
            stream->held -= moved;
            memmove(stream->window, stream->window + moved, stream->held);
            if (stream->held == stream->window_bytes) {
                stream->mismatched = true;
                return;
            }
        }
    }
}

static void take(MPIDI_ZC_stream_t * stream, const char *data, size_t length)
{
    const size_t fit = stream->at < stream->room && !stream->mismatched ?
        MPL_MIN(length, stream->room - stream->at) : 0;

    stream->at += length;
    if (fit > 0) {
        switch (stream->memory) {
            case ONE_PIECE:
                MPIR_Typerep_copy(stream->piece + stream->moved, data, fit);
                stream->moved += fit;
                break;
            case PIECES:
                fill_pieces(stream, data, fit);
                break;
            case TYPED:
                unpack(stream, data, fit);
                break;
        }
    }
}

static bool keep_early(MPIDI_ZC_stream_t * stream, size_t at, const void *data, size_t length)
{
    early_t *early = MPL_malloc(sizeof(*early) + length, MPL_MEM_BUFFER);
    early_t **place = &stream->early;

    if (!early) {
        return false;
    }
    early->at = at;
    early->length = length;
    memcpy(early->bytes, data, length);
    while (*place && (*place)->at < at) {
        place = &(*place)->next;
    }
    early->next = *place;
    *place = early;
    return true;
}

static void take_early(MPIDI_ZC_stream_t * stream)
{
    while (stream->early && stream->early->at == stream->at) {
        early_t *early = stream->early;
        stream->early = early->next;
        take(stream, early->bytes, early->length);
        MPL_free(early);
    }
}

/* ---- UCP's callbacks ---- */

static void *start_send(void *context, const void *stream, size_t count)
{
    return (void *) stream;
}

static void *start_receive(void *context, void *stream, size_t count)
{
    return stream;
}

static size_t length_of(void *state)
{
    const MPIDI_ZC_stream_t *stream = state;
    return stream->bytes;
}

static size_t pack_packet(void *state, size_t at, void *packet, size_t length)
{
    MPIDI_ZC_stream_t *stream = state;
    size_t packed = 0;

    if (stream->window_bytes == 0) {
        make_window(stream);
    }
    length = MPL_MIN(length, stream->bytes - at);
    if (at < stream->moved - stream->held) {
        /* UCP packs again what a network had no room for. */
        stream->moved = stream->held = 0;
    }
    while (packed < length) {
        const size_t next = at + packed;
        if (next >= stream->moved) {
            stream->held = pack_typed(stream, stream->window, stream->window_bytes);
            MPIR_Assert(stream->held > 0);
        } else {
            const size_t begin = stream->moved - stream->held;
            const size_t more = MPL_MIN(length - packed, stream->moved - next);
            memcpy((char *) packet + packed, stream->window + (next - begin), more);
            packed += more;
        }
    }
    return packed;
}

static ucs_status_t unpack_packet(void *state, size_t at, const void *packet, size_t length)
{
    MPIDI_ZC_stream_t *stream = state;

    if (unlikely(at != stream->at)) {
        return keep_early(stream, at, packet, length) ? UCS_OK : UCS_ERR_NO_MEMORY;
    }
    take(stream, packet, length);
    if (unlikely(stream->early)) {
        take_early(stream);
    }
    return UCS_OK;
}

/* The stream's owner frees it, since UCP does not call this after every failure. */
static void finish(void *state)
{
}

int MPIDI_ZC_stream_init(void)
{
    int mpi_errno = MPI_SUCCESS;
    const ucp_generic_dt_ops_t operations = {
        .start_pack = start_send,
        .start_unpack = start_receive,
        .packed_size = length_of,
        .pack = pack_packet,
        .unpack = unpack_packet,
        .finish = finish,
    };
    ucs_status_t status = ucp_dt_create_generic(&operations, NULL, &MPIDI_ZC_global.stream_type);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_dt_create_generic");

  fn_exit:
    return mpi_errno;
  fn_fail:
    MPIDI_ZC_global.stream_type = 0;
    goto fn_exit;
}

void MPIDI_ZC_stream_finalize(void)
{
    if (MPIDI_ZC_global.stream_type) {
        ucp_dt_destroy(MPIDI_ZC_global.stream_type);
    }
}

/* ---- a stream's life ---- */

static MPIDI_ZC_stream_t *make(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, size_t bytes)
{
    MPIDI_ZC_stream_t *stream = MPL_malloc(sizeof(*stream), MPL_MEM_BUFFER);

    if (stream) {
        memset(stream, 0, offsetof(MPIDI_ZC_stream_t, spare));
        stream->vci = vci;
        stream->rreq = rreq;
        stream->bytes = bytes;
        stream->room = bytes;
        stream->datatype = MPI_DATATYPE_NULL;
    }
    return stream;
}

static bool set_typed(MPIDI_ZC_stream_t * stream, void *user, MPI_Aint count, MPI_Datatype datatype)
{
    stream->memory = TYPED;
    stream->user = user;
    stream->count = count;
#ifdef HAVE_SEGMENTS
    stream->segment = MPIR_Segment_alloc(user, count, datatype);
    if (!stream->segment) {
        return false;
    }
#endif
    stream->datatype = datatype;
    return true;
}

int MPIDI_ZC_stream_send(MPIDI_ZC_vci_t * vci, const void *buf, MPI_Aint count,
                         MPI_Datatype datatype, size_t bytes, MPIDI_ZC_stream_t ** stream_p)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_stream_t *stream = make(vci, NULL, bytes);

    MPIR_ERR_CHKANDJUMP(!stream || !set_typed(stream, (void *) buf, count, datatype), mpi_errno,
                        MPI_ERR_OTHER, "**nomem");
    /* A request of CH4's keeps what it receives, not what it sends. */
    MPIR_Datatype_add_ref_if_not_builtin(datatype);
    try_whole(stream);
    if (stream->is_whole) {
        stream->held = pack_typed(stream, stream->window, bytes);
        MPIR_Assert(stream->held == bytes);
    }
    *stream_p = stream;

  fn_exit:
    return mpi_errno;
  fn_fail:
    if (stream) {
        MPIDI_ZC_stream_free(stream);
    }
    goto fn_exit;
}

static bool set_target(MPIDI_ZC_stream_t * stream, const MPIR_Request * rreq)
{
    const MPIDIG_rreq_async_t *async = &(MPIDIG_REQUEST(rreq, req->recv_async));
    int contiguous;
    MPI_Aint size, true_lb;
    MPIR_Datatype *datatype;

    switch (async->recv_type) {
        case MPIDIG_RECV_CONTIG:
            stream->memory = ONE_PIECE;
            stream->piece = async->iov_one.iov_base;
            stream->room = async->iov_one.iov_len;
            return true;
        case MPIDIG_RECV_IOV:
            stream->memory = PIECES;
            stream->pieces = async->iov_ptr;
            stream->room = 0;
            for (int i = 0; i < async->iov_num; i++) {
                stream->room += async->iov_ptr[i].iov_len;
            }
            return true;
        default:
            MPIDI_Datatype_get_info(MPIDIG_REQUEST(rreq, count), MPIDIG_REQUEST(rreq, datatype),
                                    contiguous, size, datatype, true_lb);
            stream->room = size;
            if (contiguous || size == 0) {
                stream->memory = ONE_PIECE;
                stream->piece = MPIR_get_contig_ptr(MPIDIG_REQUEST(rreq, buffer), true_lb);
                return true;
            }
            return set_typed(stream, MPIDIG_REQUEST(rreq, buffer), MPIDIG_REQUEST(rreq, count),
                             MPIDIG_REQUEST(rreq, datatype));
    }
}

int MPIDI_ZC_stream_receive(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, size_t bytes,
                            MPIDI_ZC_stream_t ** stream_p)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_stream_t *stream = make(vci, rreq, bytes);

    MPIR_ERR_CHKANDJUMP(!stream || !set_target(stream, rreq), mpi_errno, MPI_ERR_OTHER, "**nomem");
    try_whole(stream);
    *stream_p = stream;

  fn_exit:
    return mpi_errno;
  fn_fail:
    if (stream) {
        MPIDI_ZC_stream_free(stream);
    }
    goto fn_exit;
}

void *MPIDI_ZC_stream_whole(MPIDI_ZC_stream_t * stream)
{
    return stream->is_whole ? stream->window : NULL;
}

void MPIDI_ZC_stream_received(MPIDI_ZC_stream_t * stream)
{
    MPIR_Request *rreq = stream->rreq;
    const size_t end = MPL_MIN(stream->bytes, stream->room);

    if (stream->is_whole) {
        if (stream->memory == TYPED) {
            unpack_typed(stream, stream->window, end);
        } else {
            take(stream, stream->window, stream->bytes);
        }
    }
    if (rreq->status.MPI_ERROR == MPI_SUCCESS && stream->bytes > stream->room) {
        rreq->status.MPI_ERROR = MPIDIG_ERR_TRUNCATE(stream->room, stream->bytes);
    } else if (rreq->status.MPI_ERROR == MPI_SUCCESS && stream->moved < end) {
        rreq->status.MPI_ERROR =
            MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, __func__, __LINE__,
                                 MPI_ERR_TYPE, "**dtypemismatch", 0);
    }
    MPIR_STATUS_SET_COUNT(rreq->status, stream->moved);
}

void MPIDI_ZC_stream_free(MPIDI_ZC_stream_t * stream)
{
    while (stream->early) {
        early_t *early = stream->early;
        stream->early = early->next;
        MPL_free(early);
    }
    if (stream->is_whole) {
        stream->vci->whole_bytes -= stream->bytes;
    }
    if (stream->window != stream->spare) {
        MPL_free(stream->window);
    }
#ifdef HAVE_SEGMENTS
    if (stream->segment) {
        MPIR_Segment_free(stream->segment);
    }
#endif
    if (!stream->rreq && stream->datatype != MPI_DATATYPE_NULL) {
        MPIR_Datatype_release_if_not_builtin(stream->datatype);
    }
    MPL_free(stream);
}
