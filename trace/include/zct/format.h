/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_FORMAT_H_INCLUDED
#define ZCT_FORMAT_H_INCLUDED

/*
 * The trace file of one rank, r<rank>.zct. A run is a folder of them.
 *
 *   file    = header block*
 *   header  = magic[8] version:u32 length:u32 payload[length] crc:u32
 *   payload = rank:varint processes:varint run:u64 start:u64 mpi:string program:string
 *             command:string host:string
 *   block   = length:u32 crc:u32 state record*        (length: state and records)
 *   state   = time:zigzag order:varint collectives:varint communicators:varint
 *
 * Fixed integers are little-endian. varint is LEB128 of at most 64 bits, zigzag
 * a varint of (n << 1) ^ (n >> 63), string a varint length and bytes. crc is
 * CRC-32C: of all bytes of the header before it, and of a block's length and
 * payload. A reader ignores what follows the last field it knows in the header;
 * anything else that changes needs a new version.
 *
 * Times are nanoseconds since the run began at its rank 0, on rank 0's clock;
 * start is that moment in nanoseconds since 1970. run is the same number in all
 * files of a run and differs between runs.
 *
 * Events are numbered in the order in which the rank began them: `order` counts
 * receives posted and collective calls, in one sequence. Receives are written
 * when they complete, so a killed program's file holds what it had received.
 * Each block starts afresh: `state` repeats the counters, and all values that
 * records are relative to are zero again. A file cut anywhere loses one block.
 *
 * A record is a byte, type in the low three bits and flags above, and fields.
 * A flag tells that its field is there; otherwise it is as in the record of the
 * same type before (for a receive: ZCT_RECEIVE and ZCT_MATCHED alike).
 *
 *   ZCT_END
 *       The program reached MPI_Finalize. Nothing follows.
 *   ZCT_COMMUNICATOR  members, [ZCT_INTER: members of the remote group]
 *       Communicators are numbered in this order, from 0 = MPI_COMM_WORLD.
 *       members = count:varint, then runs of {first:zigzag length:varint}: world
 *       ranks first, first + 1, ...; first is relative to the end of the run
 *       before. World rank -1 is a process outside MPI_COMM_WORLD, in runs of 1.
 *   ZCT_SEND  time [comm] [peer] [tag] [bytes]
 *   ZCT_RECEIVE  time posted order [comm] [peer] [tag] [bytes] [addr]
 *       posted:varint is how long before `time` (the completion) it was posted;
 *       order:zigzag is relative to the successor of the last one written.
 *   ZCT_MATCHED  as ZCT_RECEIVE, then matched:varint
 *       Received by MPI_Mrecv: MPI_Mprobe took it at `order` - matched.
 *   ZCT_LOST  order:varint comm:varint peer:zigzag tag:zigzag
 *       A posted receive whose completion was not seen (MPI_Request_free,
 *       truncation): it took a message, -1: of any sender, of any tag.
 *   ZCT_COLLECTIVE  time order kind:byte comm:varint root:zigzag run* 0
 *       A collective call that began then, written when it has returned: one that fails is not,
 *       nor one that a program is killed in. Its point-to-point form follows,
 *       run = direction peer:zigzag count:varint bytes:zigzag addr:zigzag [stride:zigzag]
 *       direction = 1 send, 2 receive; peers peer, peer + 1, ... (relative to the
 *       end of the run before of that direction), `bytes` each (relative likewise),
 *       receives at addr, addr + stride, ... (addr relative to the end of the run
 *       before, stride to bytes; only if count > 1). Sends have no addr, no stride.
 *   ZCT_COLLECTIVE_END  time collective:zigzag
 *       Number of the call, from 0, relative to the successor of the last ended.
 *
 * Version 3, before it 2, is written if the calls are recorded that may wait (ZC_TRACE_CALLS).
 * `state` has two more fields, sends:varint sites:varint (those written before);
 * ZCT_SEND, ZCT_RECEIVE, ZCT_MATCHED end with site:varint, ZCT_COLLECTIVE has it
 * behind its root: where the program posted it. ZCT_SEND with ZCT_SYNCHRONOUS is of MPI_Ssend and its like:
 * it is not complete before its receive is posted (since version 3). ZCT_END with flags
 * is a type of its own:
 *
 *   ZCT_SITE  address:varint offset:varint module:string symbol:string
 *       A place in the program that calls MPI, numbered in this order from 0: the
 *       address behind the call, its offset in the file `module`, and the symbol
 *       before it, if one is exported.
 *   ZCT_CALL  time duration:varint function:byte site:varint sends:varint number*
 *       A call that may wait, at its end. It completed these sends, numbered in
 *       the order of the file (number:zigzag, relative to the successor of the
 *       last one), and the receives and collectives that are done at its time.
 *   ZCT_UNRECORDED  what:byte site:varint calls:varint bytes:varint duration:varint
 *       Calls made at the site of which there is nothing else in the file: how many, and
 *       all the bytes they moved and time they took. Since version 3.
 *   ZCT_CLOCK  time ahead:zigzag error:varint
 *       The clocks were compared: this file's was ahead of rank 0's by so much,
 *       beyond what its times are corrected by already, to within the error. Of
 *       two such records the reader corrects the times between linearly.
 *
 * time:zigzag is relative to the time of the record before, of any type.
 * comm is a varint; peer (rank in the communicator, in the remote group of an
 * intercommunicator), tag and addr are zigzags relative to their last value;
 * bytes is a varint.
 *
 * A receive needs its times, 1 byte of order and 1 of type when it repeats the
 * last one's envelope: 6 to 8 bytes; a typical stencil takes 10.
 */

#define ZCT_MAGIC "\x89ZCT\r\n\x1a\n" /* damaged by text-mode transfers, as PNG's */
#define ZCT_MAGIC_BYTES 8
#define ZCT_VERSION 1
#define ZCT_VERSION_CALLS 3
#define ZCT_VERSION_CALLS_OLD 2 /* without ZCT_UNRECORDED and ZCT_SYNCHRONOUS */
#define ZCT_MAX_HEADER_BYTES (1u << 20)
#define ZCT_MAX_BLOCK_BYTES (1u << 28)
#define ZCT_BLOCK_HEAD_BYTES 8

enum zct_record {
    ZCT_END,
    ZCT_COMMUNICATOR,
    ZCT_SEND,
    ZCT_RECEIVE,
    ZCT_MATCHED,
    ZCT_LOST,
    ZCT_COLLECTIVE,
    ZCT_COLLECTIVE_END,
};
#define ZCT_TYPE_MASK 0x07

enum zct_flag {
    ZCT_HAS_COMM = 0x08,
    ZCT_INTER = 0x08, /* of ZCT_COMMUNICATOR */
    ZCT_HAS_PEER = 0x10,
    ZCT_HAS_TAG = 0x20,
    ZCT_HAS_BYTES = 0x40,
    ZCT_HAS_ADDR = 0x80,
    ZCT_SYNCHRONOUS = 0x80, /* of ZCT_SEND in version 3 */
};

/* Types of version 2 and 3: ZCT_END and flags. */
enum zct_record_2 { ZCT_SITE = 0x08, ZCT_CALL = 0x10, ZCT_CLOCK = 0x18, ZCT_UNRECORDED = 0x20 };

/* What a ZCT_CALL did. Values are part of the format: append only. */
enum zct_function {
    ZCT_FUNCTION_INIT, /* the end of MPI_Init: the first one */
    ZCT_FUNCTION_FINALIZE,
    ZCT_FUNCTION_SEND,
    ZCT_FUNCTION_RECEIVE,
    ZCT_FUNCTION_SENDRECV,
    ZCT_FUNCTION_WAIT,
    ZCT_FUNCTION_TEST,  /* that found something complete, and those before it that did not if they */
    ZCT_FUNCTION_PROBE, /* are one loop with it, in MPI for half of the time; a probe alike */
    ZCT_FUNCTION_COLLECTIVE,
    ZCT_NR_FUNCTIONS
};

/* What a ZCT_UNRECORDED did, with or without a request. Values are part of the format: append only. */
enum zct_unrecorded {
    ZCT_UNRECORDED_PUT,
    ZCT_UNRECORDED_GET,
    ZCT_UNRECORDED_ACCUMULATE,
    ZCT_UNRECORDED_GET_ACCUMULATE,
    ZCT_UNRECORDED_FETCH_AND_OP,
    ZCT_UNRECORDED_COMPARE_AND_SWAP,
    ZCT_UNRECORDED_WINDOW, /* MPI_Win_fence and all else that synchronizes one */
    ZCT_UNRECORDED_START,  /* of a persistent collective or a partitioned message */
    ZCT_NR_UNRECORDED
};

enum zct_direction { ZCT_RUN_END, ZCT_RUN_SEND, ZCT_RUN_RECEIVE };

/* Values are part of the format: append only. */
enum zct_kind {
    ZCT_P2P,
    ZCT_BARRIER,
    ZCT_BCAST,
    ZCT_REDUCE,
    ZCT_ALLREDUCE,
    ZCT_GATHER,
    ZCT_GATHERV,
    ZCT_SCATTER,
    ZCT_SCATTERV,
    ZCT_ALLGATHER,
    ZCT_ALLGATHERV,
    ZCT_ALLTOALL,
    ZCT_ALLTOALLV,
    ZCT_ALLTOALLW,
    ZCT_SCAN,
    ZCT_EXSCAN,
    ZCT_REDUCE_SCATTER,
    ZCT_REDUCE_SCATTER_BLOCK,
    ZCT_NEIGHBOR_ALLGATHER,
    ZCT_NEIGHBOR_ALLGATHERV,
    ZCT_NEIGHBOR_ALLTOALL,
    ZCT_NEIGHBOR_ALLTOALLV,
    ZCT_NEIGHBOR_ALLTOALLW,
    ZCT_NR_KINDS
};

#endif
