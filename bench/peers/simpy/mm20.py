"""M/M/20 at 90 % load in SimPy: the peer of `speed queue`.

Prints one JSON object: events (arrivals and ends of service, two a customer, as ours are
counted), processor seconds, mean wait. SimPy itself steps through six events a customer: the start
and the end of its process, the request and the release of a server, and the timeouts of service
and arrival.
"""

import json
import random
import sys
import time

import simpy

SERVERS = 20
LOAD = 0.9


def customer(
    env: simpy.Environment, servers: simpy.Resource, draw: random.Random, waits: list
) -> None:
    """Waits for a server, and is served for a second on average."""
    arrived = env.now
    with servers.request() as turn:
        yield turn
        waits[0] += env.now - arrived
        yield env.timeout(draw.expovariate(1.0))


def arrivals(
    env: simpy.Environment,
    servers: simpy.Resource,
    draw: random.Random,
    waits: list,
    count: int,
) -> None:
    """Starts customers one after another."""
    for _ in range(count):
        env.process(customer(env, servers, draw, waits))
        yield env.timeout(draw.expovariate(SERVERS * LOAD))


def main() -> None:
    """Runs as many customers as the first argument says."""
    count = int(sys.argv[1])
    env = simpy.Environment()
    waits = [0.0]
    begin = time.process_time()
    env.process(
        arrivals(env, simpy.Resource(env, SERVERS), random.Random(1), waits, count)
    )
    env.run()
    row = {
        "events": 2 * count,
        "processor_s": time.process_time() - begin,
        "wait_mean": waits[0] / count,
        "version": simpy.__version__,
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
