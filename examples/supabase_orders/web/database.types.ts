export type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[];

export type Database = {
  "payments": {
    Tables: {
      [_ in never]: never;
    };
    Views: {
      "disputes": {
        Row: {
          "amount_minor": number | null;
          "closed_at": string | null;
          "created_at": string | null;
          "currency": string | null;
          "evidence": Json | null;
          "evidence_due_by": string | null;
          "id": string | null;
          "object": string | null;
          "payment_id": string | null;
          "reason": string | null;
          "status": string | null;
        };
        ComputedFields: never;
        Relationships: [];
      };
      "instruments": {
        Row: {
          "created_at": string | null;
          "customer": Json | null;
          "customer_id": string | null;
          "ended_at": string | null;
          "ended_reason": string | null;
          "id": string | null;
          "is_kept": boolean | null;
          "last_used_at": string | null;
          "livemode": boolean | null;
          "mandate": Json | null;
          "method": Json | null;
          "method_kind": string | null;
          "object": string | null;
          "payment_id": string | null;
          "sequence": number | null;
          "status": string | null;
          "updated_at": string | null;
          "usage": string | null;
        };
        ComputedFields: never;
        Relationships: [];
      };
      "payments": {
        Row: {
          "advice": string | null;
          "amount": number | null;
          "amount_captured": number | null;
          "amount_disputed": number | null;
          "amount_minor": number | null;
          "amount_received": number | null;
          "amount_refunded": number | null;
          "amount_refunding": number | null;
          "cancelled_at": string | null;
          "capability": string | null;
          "capture": string | null;
          "capture_before": string | null;
          "checkout_id": string | null;
          "completed_at": string | null;
          "created_at": string | null;
          "currency": string | null;
          "customer": Json | null;
          "description": string | null;
          "failure_code": string | null;
          "failure_message": string | null;
          "id": string | null;
          "instrument_id": string | null;
          "livemode": boolean | null;
          "metadata": Json | null;
          "method": Json | null;
          "method_kind": string | null;
          "next_action": Json | null;
          "object": string | null;
          "off_session": boolean | null;
          "payer": Json | null;
          "reference": string | null;
          "return_code": string | null;
          "return_url": string | null;
          "sequence": number | null;
          "settlement": string | null;
          "status": string | null;
          "updated_at": string | null;
        };
        ComputedFields: never;
        Relationships: [];
      };
      "refunds": {
        Row: {
          "amount": number | null;
          "amount_minor": number | null;
          "created_at": string | null;
          "currency": string | null;
          "destination": Json | null;
          "failure_code": string | null;
          "failure_message": string | null;
          "id": string | null;
          "livemode": boolean | null;
          "metadata": Json | null;
          "object": string | null;
          "payee_check": string | null;
          "payment_id": string | null;
          "payment_status": string | null;
          "reason": string | null;
          "return_code": string | null;
          "speed": string | null;
          "status": string | null;
          "updated_at": string | null;
        };
        ComputedFields: never;
        Relationships: [];
      };
      "transfers": {
        Row: {
          "amount": number;
          "amount_minor": number;
          "cancelled_at": string | null;
          "completed_at": string | null;
          "created_at": string;
          "currency": string;
          "description": string | null;
          "destination": Json | null;
          "failure_code": string | null;
          "failure_message": string | null;
          "id": string;
          "livemode": boolean | null;
          "metadata": Json | null;
          "object": string | null;
          "payee_check": string | null;
          "return_code": string | null;
          "sequence": number;
          "speed": string | null;
          "status": string;
          "updated_at": string;
        };
        ComputedFields: never;
        Relationships: [];
      };
    };
    Functions: {
      [_ in never]: never;
    };
    Enums: {
      [_ in never]: never;
    };
    CompositeTypes: {
      [_ in never]: never;
    };
  };
  "public": {
    Tables: {
      "orders": {
        Row: {
          "amount": number;
          "attempt": number;
          "created_at": string;
          "currency": string;
          "id": string;
          "last_sequence": number;
          "paid_at": string | null;
          "payment_id": string | null;
          "product": string;
          "refunded": number;
          "status": string;
          "user_id": string;
        };
        ComputedFields: never;
        Insert: {
          "amount": number;
          "attempt"?: number;
          "created_at"?: string;
          "currency": string;
          "id": string;
          "last_sequence"?: number;
          "paid_at"?: string | null;
          "payment_id"?: string | null;
          "product": string;
          "refunded"?: number;
          "status"?: string;
          "user_id": string;
        };
        Update: {
          "amount"?: number;
          "attempt"?: number;
          "created_at"?: string;
          "currency"?: string;
          "id"?: string;
          "last_sequence"?: number;
          "paid_at"?: string | null;
          "payment_id"?: string | null;
          "product"?: string;
          "refunded"?: number;
          "status"?: string;
          "user_id"?: string;
        };
        Relationships: [];
      };
    };
    Views: {
      [_ in never]: never;
    };
    Functions: {
      [_ in never]: never;
    };
    Enums: {
      [_ in never]: never;
    };
    CompositeTypes: {
      [_ in never]: never;
    };
  };
};

type DatabaseWithoutInternals = Omit<Database, "__InternalSupabase">;

type DefaultSchema = DatabaseWithoutInternals[Extract<keyof Database, "public">];

export type Tables<
  DefaultSchemaTableNameOrOptions extends
    | keyof (DefaultSchema["Tables"] & DefaultSchema["Views"])
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals;
  } ? keyof (
      & DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"]
      & DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Views"]
    )
    : never = never,
> = DefaultSchemaTableNameOrOptions extends { schema: keyof DatabaseWithoutInternals } ? (
    & DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"]
    & DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Views"]
  )[TableName] extends {
    Row: infer R;
  } ? R
  : never
  : DefaultSchemaTableNameOrOptions extends keyof (DefaultSchema["Tables"] & DefaultSchema["Views"])
    ? (DefaultSchema["Tables"] & DefaultSchema["Views"])[DefaultSchemaTableNameOrOptions] extends {
      Row: infer R;
    } ? R
    : never
  : never;

export type TablesInsert<
  DefaultSchemaTableNameOrOptions extends
    | keyof DefaultSchema["Tables"]
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals;
  } ? keyof DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"]
    : never = never,
> = DefaultSchemaTableNameOrOptions extends { schema: keyof DatabaseWithoutInternals }
  ? DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"][TableName] extends
    {
      Insert: infer I;
    } ? I
  : never
  : DefaultSchemaTableNameOrOptions extends keyof DefaultSchema["Tables"]
    ? DefaultSchema["Tables"][DefaultSchemaTableNameOrOptions] extends {
      Insert: infer I;
    } ? I
    : never
  : never;

export type TablesUpdate<
  DefaultSchemaTableNameOrOptions extends
    | keyof DefaultSchema["Tables"]
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals;
  } ? keyof DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"]
    : never = never,
> = DefaultSchemaTableNameOrOptions extends { schema: keyof DatabaseWithoutInternals }
  ? DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"][TableName] extends
    {
      Update: infer U;
    } ? U
  : never
  : DefaultSchemaTableNameOrOptions extends keyof DefaultSchema["Tables"]
    ? DefaultSchema["Tables"][DefaultSchemaTableNameOrOptions] extends {
      Update: infer U;
    } ? U
    : never
  : never;

export type Enums<
  DefaultSchemaEnumNameOrOptions extends
    | keyof DefaultSchema["Enums"]
    | { schema: keyof DatabaseWithoutInternals },
  EnumName extends DefaultSchemaEnumNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals;
  } ? keyof DatabaseWithoutInternals[DefaultSchemaEnumNameOrOptions["schema"]]["Enums"]
    : never = never,
> = DefaultSchemaEnumNameOrOptions extends { schema: keyof DatabaseWithoutInternals }
  ? DatabaseWithoutInternals[DefaultSchemaEnumNameOrOptions["schema"]]["Enums"][EnumName]
  : DefaultSchemaEnumNameOrOptions extends keyof DefaultSchema["Enums"]
    ? DefaultSchema["Enums"][DefaultSchemaEnumNameOrOptions]
  : never;

export type CompositeTypes<
  PublicCompositeTypeNameOrOptions extends
    | keyof DefaultSchema["CompositeTypes"]
    | { schema: keyof DatabaseWithoutInternals },
  CompositeTypeName extends PublicCompositeTypeNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals;
  } ? keyof DatabaseWithoutInternals[PublicCompositeTypeNameOrOptions["schema"]]["CompositeTypes"]
    : never = never,
> = PublicCompositeTypeNameOrOptions extends { schema: keyof DatabaseWithoutInternals }
  ? DatabaseWithoutInternals[PublicCompositeTypeNameOrOptions["schema"]]["CompositeTypes"][
    CompositeTypeName
  ]
  : PublicCompositeTypeNameOrOptions extends keyof DefaultSchema["CompositeTypes"]
    ? DefaultSchema["CompositeTypes"][PublicCompositeTypeNameOrOptions]
  : never;

export const Constants = {
  "payments": {
    Enums: {},
  },
  "public": {
    Enums: {},
  },
} as const;
