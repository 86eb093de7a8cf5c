/**
 * The columns that my_payments.ts reads. The Supabase CLI generates the types of all tables and
 * views of your project (README.md, step 2): take those in place of this file.
 */
export type Database = {
  payments: {
    Tables: Record<never, never>;
    Views: {
      payments: {
        Row: {
          id: string | null;
          status: string | null;
          amount: number | null;
          currency: string | null;
          amount_refunded: number | null;
          reference: string | null;
          created_at: string | null;
        };
        Relationships: [];
      };
    };
    Functions: Record<never, never>;
  };
};
