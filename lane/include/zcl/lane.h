/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCL_LANE_H_INCLUDED
#define ZCL_LANE_H_INCLUDED

/**
 * libzclane - bulk data between two processes, over a TCP connection of its own
 *
 * A *lane* is one connection of a pair of processes. It carries *frames* both
 * ways, and nothing else: its user sends by a channel of its own what
 * must not stand behind bulk (addresses, secrets, announcements, grants).
 *
 *   stream    | hello | header | padding | payload | header | padding | payload ...
 *
 * A stream fills memory in order, and a header must have been read before it is
 * known where its payload belongs. What a frame costs therefore depends on what
 * the receiver has said of it beforehand:
 *
 *   zcl_expect()   The next frames are these: each straight to its place, header by header,
 *                  without a look of the application at any of them.
 *   place()        The header has been read, its payload has not: straight to the place that
 *                  the callback names.
 *   nothing        The payload ends in landing memory of the lane. An address there equals
 *                  the stream offset modulo ZCL_PAGE, so the *sender* can work out where in
 *                  the page a payload will begin, and pads it to the class that is asked for.
 *
 * There is no credit: when landing memory is full nothing is read, and TCP holds
 * the sender.
 *
 * The ways to serve lanes, behind this one interface:
 *
 *   ZCL_WAY_URING   The kernel copies, inside the thread that called last, at whatever it is
 *                   computing, without a call of the application (io_uring, task work). Before
 *                   a call returns it leaves a chain of linked receives with the kernel:
 *
 *                     rest of this payload -> expected frames -> header -> landing memory
 *                     (each exactly as long as it must be)       (32 B)    (to its end)
 *
 *                   In landing memory frames lie as the stream brings them; the next call
 *                   takes the chain back, learns from the kernel how far it came, and reads
 *                   the headers there. Sends wait in the kernel likewise. What needs code runs
 *                   at calls only: place(), accepting a connection, looking at its secret.
 *   ZCL_WAY_THREAD  A thread of the library sleeps in epoll_wait(2), and does it all.
 *   ZCL_WAY_CALLER  Bytes move inside zcl_poll() and zcl_send() only: for callers with a thread
 *                   of their own that sleeps on zcl_descriptor() while the others compute.
 *
 * States of a lane:
 *
 *   opening ── hello with the right secret ──▶ open ── end of stream, error ──▶ broken
 *      └────── none in time, refused ─────────────────────────────────────────────▲
 *
 * A broken lane stays until zcl_close(). Frames may be sent while it is opening.
 *
 * Threads: every call may be made from any thread, except zcl_destroy(), which
 * must be the last. With ZCL_WAY_URING the kernel copies in the thread that made
 * the last call that armed something; if that thread ends, the next call of any
 * thread arms again. No call may be made from a signal handler.
 *
 * fork(2): the child must not use what it inherits: all calls return -ECHILD there,
 * and zcl_destroy() only gives memory back.
 *
 * Errors: 0 or a count, else a negative errno; no global state.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
#define ZCL_NOEXCEPT noexcept
extern "C" {
#else
#define ZCL_NOEXCEPT
#endif

#define ZCL_PUBLIC __attribute__((visibility("default")))

#define ZCL_PAGE 4096u             /* classes are modulo this */
#define ZCL_CLASS_NONE 0xffffffffu /* no padding: the payload follows its header */
#define ZCL_SECRET_BYTES 32u
#define ZCL_EXPECT_MAX 8u /* expected frames of one lane that are left to the kernel */

typedef struct zcl_context zcl_t;   /* one per process: listener, ring or thread, landing memory */
typedef struct zcl_lane zcl_lane_t; /* one connection */

typedef enum {
    ZCL_WAY_AUTO = 0, /* io_uring where it works, else the thread */
    ZCL_WAY_URING = 1,
    ZCL_WAY_THREAD = 2,
    ZCL_WAY_CALLER = 3
} zcl_way_t;

/** "auto", "uring", "thread", "caller"; never NULL. */
ZCL_PUBLIC const char *zcl_way_name(zcl_way_t way) ZCL_NOEXCEPT;

/** What a header says of its payload. */
typedef struct {
    uint64_t id;         /* the sender's name for it */
    uint64_t len;        /* bytes, may be 0 */
    uint32_t page_class; /* place in the page, < ZCL_PAGE, or ZCL_CLASS_NONE */
    uint32_t tag;        /* the sender's, not looked at */
} zcl_frame_t;

/**
 * Where does this payload belong? Called when a header has been read and its
 * payload has not wholly arrived. Memory for frame->len bytes that stays valid
 * until the frame's event or zcl_close(), or NULL: landing memory. Is called by
 * any thread that is inside a call, or by the library's; must call nothing here.
 */
typedef void *(*zcl_place_t)(void *arg, zcl_lane_t *lane, const zcl_frame_t *frame);

/** `size` first: set it to sizeof. A zero field takes its default. */
typedef struct {
    size_t size;
    zcl_way_t way;
    uint32_t hello_timeout_ms;    /* for a connection to prove itself; default 5000 */
    const struct sockaddr *local; /* address that lanes come and go by, port as a rule 0;
                                     default 127.0.0.1 */
    socklen_t local_len;
    const char *interface;       /* bind to this device, too; NULL: the address will do */
    const unsigned char *secret; /* ZCL_SECRET_BYTES that a peer must know to connect; needed */
    uint64_t name;               /* what this process is called in its peers' events */
    size_t landing_bytes;        /* landing memory of a lane, address space until something
                                    lands; default 64 MiB */
    size_t budget_bytes;         /* of all lanes: each gets its share, at least 64 KiB;
                                    default 256 MiB */
    zcl_place_t place;           /* NULL: landing memory always */
    void *arg;
    void (*log)(void *arg, const char *line); /* falling back, strangers; NULL: silent */
} zcl_params_t;

/**
 * zcl_create - listen, and make ready to serve lanes
 * @out: set only on success; free with zcl_destroy()
 *
 * ZCL_WAY_AUTO tries on this machine whether io_uring does what is needed (a receive
 * that is taken back must tell how far it came: Linux 6.1), and says in the log why not.
 *
 * Return: 0; -EINVAL; -ENOMEM; of socket(2), bind(2), listen(2); with ZCL_WAY_URING also of
 * io_uring_setup(2): -ENOSYS, -EPERM (kernel.io_uring_disabled, seccomp), -ENOMEM (locked
 * memory), or -EOPNOTSUPP (there, but too old).
 */
ZCL_PUBLIC int zcl_create(const zcl_params_t *params, zcl_t **out) ZCL_NOEXCEPT;

/** Closes all lanes; NULL is allowed. What lies in landing memory is gone. */
ZCL_PUBLIC void zcl_destroy(zcl_t *context) ZCL_NOEXCEPT;

/** The address to connect to, port and all. Return: 0; -EINVAL (room too short), -ECHILD. */
ZCL_PUBLIC int zcl_address(const zcl_t *context, struct sockaddr *address,
                           socklen_t *len) ZCL_NOEXCEPT;

/**
 * zcl_descriptor - readable while a call of zcl_poll() would do something
 *
 * ZCL_WAY_CALLER only. The descriptor is the library's; poll(2) and the like may wait for it, level
 * triggered. It does not report deadlines: a caller that has connected, or waits for a peer to do so,
 * calls zcl_poll() now and then.
 *
 * Return: a descriptor; -EINVAL; -ECHILD; -EOPNOTSUPP (another way).
 */
ZCL_PUBLIC int zcl_descriptor(const zcl_t *context) ZCL_NOEXCEPT;

/**
 * zcl_connect - a lane to the process that listens at @address
 * @secret: the ZCL_SECRET_BYTES of its zcl_params_t; NULL: those of ours
 *
 * Returns at once. ZCL_EVENT_OPENED or ZCL_EVENT_BROKEN will tell, the latter after 20 s if no
 * packet is answered. If two processes connect to each other at the same time there are two lanes;
 * callers agree which of them connects (the lower name, say).
 *
 * Return: 0; -EINVAL; -ECHILD; -ENOMEM; -EMFILE; of socket(2), bind(2), connect(2).
 */
ZCL_PUBLIC int zcl_connect(zcl_t *context, const struct sockaddr *address, socklen_t len,
                           const unsigned char *secret, zcl_lane_t **out) ZCL_NOEXCEPT;

/**
 * zcl_send - queue one frame
 * @frame: copied
 * @data:  frame->len bytes, the library's until ZCL_EVENT_SENT or zcl_close()
 * @token: comes back in the event
 *
 * Frames of a lane arrive in the order of the calls.
 *
 * Return: 0; -EINVAL; -EPIPE (broken: no event will come); -ENOMEM; -ECHILD.
 */
ZCL_PUBLIC int zcl_send(zcl_lane_t *lane, const zcl_frame_t *frame, const void *data,
                        void *token) ZCL_NOEXCEPT;

/**
 * zcl_expect - the next frame that nothing has been said of is this one
 * @frame: id and len as they will come; the class must be ZCL_CLASS_NONE
 * @buf:   frame->len bytes, the library's until the frame's event or zcl_close()
 *
 * Callers know from their own channel: they have asked for it, and nothing else is sent
 * before. A frame that differs breaks the lane (-EPROTO), and may have been written to @buf.
 *
 * Return: 0; -EINVAL; -EPIPE; -ENOMEM; -ECHILD.
 */
ZCL_PUBLIC int zcl_expect(zcl_lane_t *lane, const zcl_frame_t *frame, void *buf) ZCL_NOEXCEPT;

typedef enum {
    ZCL_EVENT_NONE = 0,
    ZCL_EVENT_ACCEPTED, /* peer has connected, and proved itself: `name` */
    ZCL_EVENT_OPENED,   /* a lane of zcl_connect() is open: `name` */
    ZCL_EVENT_ARRIVED,  /* `frame` lies at `data`; in landing memory if `landed` */
    ZCL_EVENT_SENT,     /* TCP has taken the frame of `token`: its data is the caller's again;
                           or never will: `status` */
    ZCL_EVENT_BROKEN    /* `status`: 0 the peer has closed between frames; -ECONNRESET in one, or
                           reset; -EACCES wrong secret; -ETIMEDOUT no hello; -EPROTO; -ENOMEM;
                           others of connect(2), recv(2), send(2). Frames arrive before it. */
} zcl_event_type_t;

typedef struct {
    zcl_event_type_t type;
    int status;
    zcl_lane_t *lane;
    uint64_t name;
    zcl_frame_t frame;
    void *data;
    int landed;
    void *token;
} zcl_event_t;

/**
 * zcl_poll - what has happened
 * @timeout_ns: wait for so long if nothing has; 0: do not wait; negative: without end
 *
 * Return: number of events put into @events, 0 to @max; -EINVAL; -ECHILD; -EINTR (a signal
 * was handled); -ENOMEM (nothing is lost: call again).
 */
ZCL_PUBLIC int zcl_poll(zcl_t *context, zcl_event_t *events, int max,
                        int64_t timeout_ns) ZCL_NOEXCEPT;

/** Gives landing memory of an event back. Order does not matter. Return: 0; -EINVAL; -ECHILD. */
ZCL_PUBLIC int zcl_release(zcl_lane_t *lane, void *data) ZCL_NOEXCEPT;

/**
 * zcl_close - no more of this lane, at once
 *
 * When it returns nothing touches the caller's buffers any more; landing memory of the lane
 * is gone, and so are events that were not polled. Frames that were not SENT may not arrive.
 * Return: 0; -ECHILD.
 */
ZCL_PUBLIC int zcl_close(zcl_lane_t *lane) ZCL_NOEXCEPT;

typedef struct {
    size_t size; /* in: sizeof(zcl_stats_t) */
    zcl_way_t way;
    int uring_error; /* why not io_uring, with ZCL_WAY_AUTO; else 0 */
    uint64_t lanes_now;
    uint64_t strangers; /* connections closed without the right secret in time */
    uint64_t frames_sent, frames_arrived;
    uint64_t bytes_sent, bytes_arrived; /* payload */
    uint64_t bytes_direct;              /* arrived straight at a place or an expected buffer */
    uint64_t bytes_landed;              /* in landing memory */
    uint64_t bytes_moved;               /* of the two: had to be copied there from landing memory */
    uint64_t armed, taken_back; /* chains left with the kernel; of these, not to their end */
    uint64_t wakes; /* of the thread; with ZCL_WAY_CALLER, calls that found a lane ready */
    uint64_t held;  /* times a lane was not read for want of landing memory */
} zcl_stats_t;

ZCL_PUBLIC int zcl_stats(const zcl_t *context, zcl_stats_t *stats) ZCL_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* ZCL_LANE_H_INCLUDED */
