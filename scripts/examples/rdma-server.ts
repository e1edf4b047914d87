// rdma_server of rdma-core in Node: answers the 16 bytes of one client with 16 bytes. See README.md beside it.
import { once } from 'node:events';
import { type Connection, createServer } from 'node-rdma';

const [host = '0.0.0.0', port = '7471'] = process.argv.slice(2);

const server = createServer({ sendDepth: 1, receiveDepth: 1 });
await server.listen({ host, port: Number(port) });
const [connection] = (await once(server, 'connection')) as [Connection];
const message = await connection.receive();
console.log(`rdma-server: ${message?.length} bytes from ${connection.remoteAddress}`);
await connection.send(new Uint8Array(16));
// The client is the one to close: what is still on its way must not be cut off.
await connection.receive();
await server.close();
