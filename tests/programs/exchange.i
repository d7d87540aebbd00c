// SPDX-License-Identifier: BSD-3-Clause
// Yorick, on every rank: rank 0 hands arrays of 4 MiB to rank 1, which is busy when they
// come, and compares what comes back turned round.

func exchange(rounds)
{
  if (mp_exec()) {
    mp_exec, "exchange," + print(rounds)(1);
    return;
  }
  wrong = 0;
  for (i=1 ; i<=rounds ; ++i) {
    if (mp_rank == 0) {
      x = indgen(524288)*i;
      mp_send, 1, x;
      wrong += anyof(mp_recv(1) != x(::-1));
    } else if (mp_rank == 1) {
      for (s=0., k=1 ; k<=20000 ; ++k) s += sin(k);
      x = mp_recv(0);
      mp_send, 0, x(::-1);
    }
  }
  mp_handin;
  if (!mp_rank)
    write, format="exchange: %ld rounds on %ld ranks, %ld wrong\n", rounds, mp_size, wrong;
}
