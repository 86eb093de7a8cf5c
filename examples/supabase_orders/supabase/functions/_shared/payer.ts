/** The payer of a request, and the headers that browsers need. */

/** Names the origins that may call the function. Set the address of your site. */
export const CORS_HEADERS = {
  "Access-Control-Allow-Origin": Deno.env.get("SHOP_ORIGIN") ?? "*",
  "Access-Control-Allow-Headers": "authorization, x-client-info, apikey, content-type",
};

/** A signed-in user. */
export interface Payer {
  id: string;
  /** Null if the user has signed in without one, for example by telephone. */
  email: string | null;
}

/**
 * Returns the signed-in user, or null. Supabase has verified the token before the function runs,
 * because `verify_jwt` is true in config.toml.
 */
export function payerOf(request: Request): Payer | null {
  const [, payload] = (request.headers.get("Authorization") ?? "").split(".");
  if (!payload) return null;
  try {
    const claims = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/")));
    // The anon key is a token too, but it is of no user.
    if (claims.role !== "authenticated") return null;
    return { id: claims.sub, email: claims.email || null };
  } catch {
    return null;
  }
}
