/**
 * Responds in place of a Supabase project's API to the requests of examples/supabase_orders/web:
 * the sign-up of a user, a page of a view, and a private channel. The statements run in the
 * database as PostgREST and Realtime run them, for the role and the user of the token. The
 * functions of the service are at /functions/v1. Tokens are not signed.
 */

import assert from "node:assert/strict";
import type { ExposedProject, Row } from "./exposed_project.ts";

/** The content of a token. */
interface Token {
  role: string;
  sub?: string;
  email?: string;
}

/** A channel that a client has joined. */
interface Channel {
  socket: WebSocket;
  join_ref: string;
}

/** Makes a token, which the double believes. */
function tokenOf(content: Token): string {
  const part = (value: object) => btoa(JSON.stringify(value)).replaceAll("=", "");
  const exp = Math.floor(Date.now() / 1000) + 3600;
  return `${part({ alg: "HS256", typ: "JWT" })}.${part({ ...content, exp })}.signature`;
}

function readToken(token: string | null | undefined): Token {
  return JSON.parse(atob(token!.replace("Bearer ", "").split(".")[1]!));
}

/** Starts the double on a free port of loopback. */
export function startSupabaseApi(project: ExposedProject) {
  const channels = new Map<string, Channel[]>();
  /** Sends the messages that the database has made to the joined channels. */
  const deliver = async () => {
    const messages = await project.admin`
      delete from realtime.messages where private returning topic, event, payload`;
    for (const { topic, event, payload } of messages) {
      const sent = { type: "broadcast", event, payload };
      for (const { socket, join_ref } of channels.get(`realtime:${topic}`) ?? []) {
        const message = [join_ref, null, `realtime:${topic}`, "broadcast", sent];
        socket.send(JSON.stringify(message));
      }
    }
  };
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const url = new URL(request.url);
      if (url.pathname === "/realtime/v1/websocket") return openSocket(project, channels, request);
      if (url.pathname === "/auth/v1/signup") return signUp(await request.json());
      if (url.pathname.startsWith("/functions/v1/")) {
        const inside = url.pathname.replace("/functions/v1", "") + url.search;
        const response = await project.fetch(new Request(`http://localhost${inside}`, request));
        await deliver();
        return response;
      }
      assert.equal(request.method, "GET");
      return await readPage(project, url, request.headers);
    },
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    /** The keys of the project: tokens of the roles anon and service_role. */
    anon_key: tokenOf({ role: "anon" }),
    service_key: tokenOf({ role: "service_role" }),
    close: () => server.shutdown(),
  };
}

/** A page of a view: `GET /rest/v1/payments?select=a,b&order=id.desc&limit=20`. */
async function readPage(
  { as }: ExposedProject,
  { pathname, searchParams }: URL,
  headers: Headers,
): Promise<Response> {
  const view = `${headers.get("Accept-Profile")}.${pathname.replace("/rest/v1/", "")}`;
  const { select, order, limit, ...others } = Object.fromEntries(searchParams);
  assert.match(`${view} ${select} ${limit}`, /^payments\.[a-z]+ [a-z_,]+ \d+$/);
  assert.deepEqual([order, others], ["id.desc", {}]);
  const { role, sub } = readToken(headers.get("Authorization"));
  try {
    const [page]: Row[] = await as(
      role,
      sub ?? null,
      `select coalesce(json_agg(row_to_json(r)), '[]') as rows
       from (select ${select} from ${view} order by id desc limit ${limit}) r`,
    );
    return Response.json(page.rows);
  } catch (error) {
    const { code, message } = error as Error & { code: string };
    return Response.json({ code, message, details: null, hint: null }, { status: 403 });
  }
}

function signUp({ email }: { email: string }): Response {
  const id = crypto.randomUUID();
  const access_token = tokenOf({ role: "authenticated", sub: id, email });
  const user = { id, email, aud: "authenticated", app_metadata: {}, user_metadata: {} };
  const times = { expires_in: 3600, token_type: "bearer", refresh_token: "refresh" };
  return Response.json({ access_token, ...times, user });
}

/** A connection that speaks Phoenix 2.0.0. Joins as Realtime does: a policy decides. */
function openSocket(
  { as, admin }: ExposedProject,
  channels: Map<string, Channel[]>,
  request: Request,
): Response {
  const { socket, response } = Deno.upgradeWebSocket(request);
  socket.onmessage = async ({ data }) => {
    const [join_ref, ref, topic, event, payload] = JSON.parse(data);
    let status = "ok";
    if (event === "phx_join") {
      assert.equal(payload.config.private, true);
      const { role, sub } = readToken(payload.access_token);
      await admin`insert into realtime.messages (topic, extension) values ('x', 'broadcast')`;
      const set = `set local realtime.topic = '${topic.replace("realtime:", "")}'`;
      const read = await as(role, sub ?? null, `${set}; select from realtime.messages`);
      await admin`delete from realtime.messages where not private`;
      if (read.at(-1).length === 0) status = "error";
      else channels.set(topic, [...channels.get(topic) ?? [], { socket, join_ref }]);
    }
    const reason = `Unauthorized: You do not have permissions to read from this Channel topic`;
    const reply = { status, response: status === "ok" ? { postgres_changes: [] } : { reason } };
    if (event !== "access_token") {
      socket.send(JSON.stringify([join_ref, ref, topic, "phx_reply", reply]));
    }
  };
  return response;
}
