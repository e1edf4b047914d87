// rdma_client of rdma-core in Node: sends 16 bytes to rdma_server and waits for 16 bytes. See README.md beside it.
import { connect } from 'node-rdma';

const [host = '127.0.0.1', port = '7471'] = process.argv.slice(2);

const connection = connect({ host, port: Number(port), sendDepth: 1, receiveDepth: 1 });
await connection.send(new Uint8Array(16));
const answer = await connection.receive();
if (answer === null) throw new Error('the server has closed the connection without an answer');
console.log(`rdma-client: ${answer.length} bytes from ${connection.remoteAddress}`);
await connection.close();
