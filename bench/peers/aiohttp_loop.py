"""The loop in Python: aiohttp, a number of requests in flight, the results in a file. Nothing survives a crash.

Prints {"seconds": ...} of the second file; the first one warms up.

python aiohttp_loop.py <warm-up> <input> <output> <origin> <in flight>
"""

import asyncio
import json
import sys
import time

import aiohttp


async def main(warm_up, source, output, origin, in_flight):
    connector = aiohttp.TCPConnector(limit=in_flight)
    async with aiohttp.ClientSession(connector=connector) as session:
        await batch(session, warm_up, output, origin, in_flight)
        started = time.perf_counter()
        await batch(session, source, output, origin, in_flight)
        print(json.dumps({"seconds": time.perf_counter() - started}))


async def batch(session, source, output, origin, in_flight):
    with open(source, encoding="utf-8") as lines, open(output, "w", encoding="utf-8") as out:

        async def loop():
            for text in lines:
                line = json.loads(text)
                async with session.post(origin + line["url"], json=line["body"]) as answer:
                    answer.raise_for_status()
                    response = {"status_code": answer.status, "body": await answer.json()}
                result = {"custom_id": line["custom_id"], "response": response, "error": None}
                out.write(json.dumps(result) + "\n")

        await asyncio.gather(*(loop() for _ in range(in_flight)))


asyncio.run(main(*sys.argv[1:5], int(sys.argv[5])))
